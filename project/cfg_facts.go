package project

import (
	"corpus-git/internal/py"
	"corpus-git/layout"
)

// defaults returns the keys that every configuration has, and the values they have if no layer sets them.
func defaults(in CfgInputs) *py.Dict {
	d := py.NewDict(
		"name", string(in.Name), "api_version", APIVersion, "installer", "generic",
		"default_env", DefaultEnv, "user", in.Name.User(), "group", in.Name.Group(), "groups", py.NewList(),
		"no_user", false, "remote_less", false, "keep_archives", int64(in.Retention.Keep),
		"data", py.NewDict(), "sls_default_pillar", py.NewDict(), "defaults", py.NewDict(),
		"env_defaults", py.NewDict(), "os_defaults", py.NewDict(),
		"only", nil, "only_steps", nil, "runner", nil, "store_other_branches", nil,
		"submodules", nil, "submodules_base", nil, "lfs", nil,
		"permissions", nil, "files", nil, "env", nil, "checks", nil, "units", nil, "logs", nil, "on_rollback", nil, "rollback_timeout", nil, "undo", nil, "converge", nil, "watch", nil, "watch_debounce", nil, "register", nil,
		"keep_failed_archives", nil, "archives_max_bytes", nil, "archives_max_age", nil, "failed_archives_max_age", nil,
		"rollback", false, "deploy_summary", nil, "deploy_ret", py.NewDict(),
		"push_salt_url", in.Facts.PushSaltURL, "push_pillar_url", in.Facts.PushPillarURL,
		"this_host", in.Facts.FQDN, "remote_host", in.Facts.FQDN,
	)
	for _, p := range procedureKeys() {
		d.SetStr("skip_"+p, false)
	}
	if in.Classes != nil {
		d.SetStr(classesKey, py.NewList())
	}
	return d
}

// facts returns the keys that describe the project and the deployment themselves.
func facts(in CfgInputs) *py.Dict {
	p := in.Layout
	d := py.NewDict(
		"name", string(in.Name), "api_version", APIVersion,
		"fqdn", in.Facts.FQDN, "minion_id", in.Facts.MinionID,
		"projects_dir", p.Root().Projects(), "project_dir", p.Dir(), "project_root", p.Live(), "salt_root", p.Salt(),
		"pillar_root", p.Pillar(), "data_root", p.Data(), "archives_root", p.Archives(),
		"git_root", p.Git(), "project_git_root", p.ProjectGit(), "pillar_git_root", p.PillarGit(),
		"wired_salt_root", p.SaltLink(), "wired_pillar_root", p.PillarLink(),
		"chrono", nil, "current_archive_dir", nil, "deployment_id", nil,
	)
	if dep := in.Deployment; dep != nil {
		d.SetStr("rollback", dep.Trigger == TriggerRollback)
	}
	if dep := in.Deployment; dep != nil && dep.ID != "" {
		d.SetStr("deployment_id", string(dep.ID))
		d.SetStr("chrono", layout.ArchiveName(dep.At, string(dep.ID)))
		d.SetStr("current_archive_dir", p.Archive(dep.At, string(dep.ID)))
	}
	return d
}

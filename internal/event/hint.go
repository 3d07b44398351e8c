package event

import "regexp"

// command matches a command in a hint, as an operator types it on the server's machine. It lists those that SSH serves, which a test of
// package verbs enforces, except doctor, which is for the server's operator. Others (serve, lint, init) run on the machine only.
var command = regexp.MustCompile(`\bcorpus-git (access|approvals|approve|archives|audit|cancel|cfg|check|configs|converge|deploy|deployments|enter|gc|host-key|job|key|kv|ldap|logs|notify|plan|project|promote|ps|` +
	`recipe|reject|report|restart|rollback|rollout|run|signal|start|statistics|stop|task|token|undeploy|user|version|waits|web)\b`)

// WithCommands rewrites a hint for a reader elsewhere: prefix is how they run the server's commands ("ssh -p 2222 deploy@server"), "" for
// the operator.
func WithCommands(hint, prefix string) string {
	if prefix == "" {
		return hint
	}
	return command.ReplaceAllStringFunc(hint, func(s string) string { return prefix + s[len("corpus-git"):] })
}

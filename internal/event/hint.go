package event

import "regexp"

// command is a command in a hint, as an operator types it on the server's machine. Those that SSH serves are listed, and a test of package verbs
// holds the list to them, but doctor: what that finds is for whoever runs the server. Others (serve, lint, init) run on the machine only.
var command = regexp.MustCompile(`\bcorpus-git (access|archives|audit|cancel|cfg|check|deploy|deployments|gc|host-key|key|ldap|logs|notify|plan|project|ps|` +
	`report|restart|rollback|run|start|stop|task|token|undeploy|user|version|web)\b`)

// WithCommands is a hint as somebody who is not on the server's machine can follow it: prefix is how they run its commands
// ("ssh -p 2222 deploy@server"), "" for the operator's own way.
func WithCommands(hint, prefix string) string {
	if prefix == "" {
		return hint
	}
	return command.ReplaceAllStringFunc(hint, func(s string) string { return prefix + s[len("corpus-git"):] })
}

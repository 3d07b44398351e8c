package access

import "corpus-git/project"

// Users is printed by  user list --json.
type Users struct {
	Version int         `json:"version"`
	Users   []Principal `json:"users"`
}

// UserDocument is printed by  user show --json.
type UserDocument struct {
	Version int       `json:"version"`
	User    Principal `json:"user"`
	Keys    []Key     `json:"keys"`
	// Certificates are the certificates that logged in and have not expired.
	Certificates []Certificate `json:"certificates"`
	Tokens       []Token       `json:"tokens"`
	Grants       []Grant       `json:"grants"`
}

// Keys is printed by  key list --json.
type Keys struct {
	Version int   `json:"version"`
	Keys    []Key `json:"keys"`
}

// Tokens is printed by  token list --json.
type Tokens struct {
	Version int     `json:"version"`
	Tokens  []Token `json:"tokens"`
}

// TokenDocument is printed by token create --json. It is the only place that ever contains the
// secret.
type TokenDocument struct {
	Version int    `json:"version"`
	Token   Token  `json:"token"`
	Secret  string `json:"secret"`
}

// Grants is printed by  access list --json.
type Grants struct {
	Version int          `json:"version"`
	Project project.Name `json:"project"`
	Grants  []Grant      `json:"grants"`
}

package api

import (
	"net/http"

	"corpus-git/access"
)

// users registers the operations on users, keys, tokens and permissions.
func (a *API) users() {
	type One struct {
		User string `path:"user" maxLength:"64"`
	}
	type addUser struct {
		Body struct {
			Name  string `json:"name" maxLength:"64"`
			Kind  string `json:"kind,omitempty" enum:"person,bot,agent" doc:"Absent: person"`
			Email string `json:"email,omitempty" maxLength:"254"`
			Admin bool   `json:"admin,omitempty" doc:"May do everything, on all projects"`
		}
	}
	type setUser struct {
		One
		Body struct {
			Kind  *string `json:"kind,omitempty" enum:"person,bot,agent"`
			Email *string `json:"email,omitempty" maxLength:"254"`
			Admin *bool   `json:"admin,omitempty"`
		}
	}
	op := func(method, path, id, summary string) operation {
		return operation{method: method, path: path, id: id, tag: "users", summary: summary}
	}
	made := func(o operation) operation { o.status = http.StatusCreated; return o }
	add[nothing, access.Users](a, op(http.MethodGet, "/users", "listUsers", "List the users"), func(*nothing) call { return do("user list") })
	add[addUser, Text](a, made(op(http.MethodPost, "/users", "addUser", "Add a user")), func(in *addUser) call {
		return command("user add", in.Body.Name).option("kind", in.Body.Kind).option("email", in.Body.Email).option("admin", in.Body.Admin)
	})
	add[One, access.UserDocument](a, op(http.MethodGet, "/users/{user}", "getUser", "Show a user: keys, tokens and rights"), func(in *One) call { return do("user show", in.User) })
	add[setUser, Text](a, op(http.MethodPatch, "/users/{user}", "setUser", "Change a user"), func(in *setUser) call {
		c := command("user set", in.User)
		if in.Body.Kind != nil {
			c = c.option("kind", *in.Body.Kind)
		}
		if in.Body.Email != nil {
			c.options = append(c.options, "--email="+*in.Body.Email)
		}
		if in.Body.Admin != nil {
			c.options = append(c.options, "--admin="+map[bool]string{true: "true", false: "false"}[*in.Body.Admin])
		}
		return c
	})
	for verb, summary := range map[string]string{"disable": "Keep a user from logging in", "enable": "Enable a disabled user"} {
		add[One, Text](a, op(http.MethodPost, "/users/{user}/"+verb, verb+"User", summary), func(in *One) call { return command("user "+verb, in.User) })
	}
	add[One, Text](a, op(http.MethodDelete, "/users/{user}", "removeUser", "Remove a user with its keys, tokens and rights"), func(in *One) call { return command("user remove", in.User) })
	a.keyOperations()
	a.tokenOperations()
	type grant struct {
		OnProject
		User  string `path:"user" maxLength:"64"`
		Right string `path:"right" enum:"read,deploy,configure,shell,approve,admin"`
	}
	add[OnProject, access.Grants](a, op(http.MethodGet, "/projects/{name}/grants", "listGrants", "List the rights on a project"), func(in *OnProject) call { return do("access list", in.Name) })
	for verb, method := range map[string]string{"grant": http.MethodPut, "revoke": http.MethodDelete} {
		add[grant, Text](a, op(method, "/projects/{name}/grants/{user}/{right}", verb, map[string]string{"grant": "Give a user a right", "revoke": "Take a right from a user"}[verb]),
			func(in *grant) call { return command("access "+verb, in.Name, in.User, in.Right) })
	}
}

func (a *API) keyOperations() {
	type addKey struct {
		Body struct {
			Name    string `json:"name" maxLength:"64"`
			Key     string `json:"key" maxLength:"65536" doc:"The public key, as in a .pub file"`
			User    string `json:"user,omitempty" maxLength:"64" doc:"Whose it is; absent: that of a new user of the key's name"`
			Admin   bool   `json:"admin,omitempty" doc:"The new user may do everything"`
			Expires string `json:"expires,omitempty" maxLength:"20" doc:"How long it lasts, such as 12h or 90d; absent: for ever"`
		}
	}
	type One struct {
		Key string `path:"key" maxLength:"64"`
	}
	add[nothing, access.Keys](a, operation{method: http.MethodGet, path: "/keys", id: "listKeys", tag: "users", summary: "List the SSH keys"}, func(*nothing) call { return do("key list") })
	add[addKey, Text](a, operation{method: http.MethodPost, path: "/keys", id: "addKey", tag: "users", summary: "Add an SSH key", status: http.StatusCreated}, func(in *addKey) call {
		c := command("key add", in.Body.Name).option("user", in.Body.User).option("admin", in.Body.Admin).option("expires", in.Body.Expires)
		c.stdin = in.Body.Key
		return c
	})
	add[One, Text](a, operation{method: http.MethodDelete, path: "/keys/{key}", id: "removeKey", tag: "users", summary: "Remove an SSH key"}, func(in *One) call { return command("key remove", in.Key) })
}

func (a *API) tokenOperations() {
	type list struct {
		User string `query:"user" maxLength:"64" doc:"Those of one user"`
	}
	type createToken struct {
		Body struct {
			Name     string   `json:"name" maxLength:"64"`
			User     string   `json:"user,omitempty" maxLength:"64" doc:"Whose it is; absent: your own"`
			Projects []string `json:"projects,omitempty" doc:"It is for these only"`
			Rights   []string `json:"rights,omitempty" doc:"It may do this only: read, deploy, configure, shell, approve, admin"`
			ReadOnly bool     `json:"read_only,omitempty" doc:"It changes nothing"`
			Expires  string   `json:"expires,omitempty" maxLength:"20" doc:"How long it lasts, such as 12h; absent: 90d"`
		}
	}
	type One struct {
		Token string `path:"token" maxLength:"64" doc:"Its name or ID"`
		User  string `query:"user" maxLength:"64" doc:"Whose it is, where several have one of that name"`
	}
	add[list, access.Tokens](a, operation{method: http.MethodGet, path: "/tokens", id: "listTokens", tag: "users", summary: "List the API tokens"},
		func(in *list) call { return do("token list").option("user", in.User) })
	add[createToken, access.TokenDocument](a, operation{method: http.MethodPost, path: "/tokens", id: "createToken", tag: "users", summary: "Make an API token; the secret is in this answer and nowhere else", status: http.StatusCreated,
		about: "Takes no Idempotency-Key: the answer is not stored."},
		func(in *createToken) call {
			b := in.Body
			return do("token create", b.Name).option("user", b.User).all("project", b.Projects).all("right", b.Rights).option("read-only", b.ReadOnly).option("expires", b.Expires)
		})
	add[One, Text](a, operation{method: http.MethodDelete, path: "/tokens/{token}", id: "revokeToken", tag: "users", summary: "End an API token"},
		func(in *One) call { return command("token revoke", in.Token).option("user", in.User) })
}

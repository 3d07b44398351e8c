package access

// schema upgrades the tables of any released version. Versions from 0.1 to the introduction of principals had the first three statements.
var schema = []string{
	`CREATE TABLE keys (name TEXT PRIMARY KEY, fingerprint TEXT NOT NULL UNIQUE, blob BLOB NOT NULL, type TEXT NOT NULL, comment TEXT NOT NULL,
			admin INTEGER NOT NULL, added INTEGER NOT NULL, added_by TEXT NOT NULL, last_used INTEGER NOT NULL DEFAULT 0)`,
	`CREATE TABLE grants (project TEXT NOT NULL, key TEXT NOT NULL REFERENCES keys(name) ON DELETE CASCADE, right TEXT NOT NULL,
			added INTEGER NOT NULL, added_by TEXT NOT NULL, PRIMARY KEY (project, key, right))`,
	`CREATE INDEX grants_key ON grants(key)`,

	// Each key becomes a principal of its name, with the key's permissions. The old tables are dropped in the order of their references: a table
	// that is dropped empties those that refer to it.
	`CREATE TABLE principals (name TEXT PRIMARY KEY, kind TEXT NOT NULL, email TEXT NOT NULL, admin INTEGER NOT NULL, disabled INTEGER NOT NULL,
			implied INTEGER NOT NULL, added INTEGER NOT NULL, added_by TEXT NOT NULL)`,
	`INSERT INTO principals(name, kind, email, admin, disabled, implied, added, added_by) SELECT name, 'person', '', admin, 0, 1, added, added_by FROM keys`,
	`CREATE TABLE principal_keys (name TEXT PRIMARY KEY, principal TEXT NOT NULL REFERENCES principals(name) ON DELETE CASCADE, fingerprint TEXT NOT NULL UNIQUE,
			blob BLOB NOT NULL, type TEXT NOT NULL, comment TEXT NOT NULL, expires INTEGER NOT NULL DEFAULT 0, added INTEGER NOT NULL, added_by TEXT NOT NULL,
			last_used INTEGER NOT NULL DEFAULT 0)`,
	`INSERT INTO principal_keys(name, principal, fingerprint, blob, type, comment, added, added_by, last_used)
			SELECT name, name, fingerprint, blob, type, comment, added, added_by, last_used FROM keys`,
	`CREATE TABLE principal_grants (project TEXT NOT NULL, principal TEXT NOT NULL REFERENCES principals(name) ON DELETE CASCADE, right TEXT NOT NULL,
			added INTEGER NOT NULL, added_by TEXT NOT NULL, PRIMARY KEY (project, principal, right))`,
	`INSERT INTO principal_grants(project, principal, right, added, added_by) SELECT project, key, right, added, added_by FROM grants`,
	`DROP TABLE grants`,
	`DROP TABLE keys`,
	`ALTER TABLE principal_keys RENAME TO keys`,
	`ALTER TABLE principal_grants RENAME TO grants`,
	`CREATE INDEX keys_principal ON keys(principal)`,
	`CREATE INDEX grants_principal ON grants(principal)`,
	`CREATE TABLE tokens (id TEXT PRIMARY KEY, name TEXT NOT NULL, principal TEXT NOT NULL REFERENCES principals(name) ON DELETE CASCADE, hash TEXT NOT NULL UNIQUE,
			projects TEXT NOT NULL, rights TEXT NOT NULL, read_only INTEGER NOT NULL, expires INTEGER NOT NULL, added INTEGER NOT NULL, added_by TEXT NOT NULL,
			last_used INTEGER NOT NULL DEFAULT 0, UNIQUE (principal, name))`,
	`CREATE TABLE certificates (hash TEXT NOT NULL, principal TEXT NOT NULL REFERENCES principals(name) ON DELETE CASCADE, key_id TEXT NOT NULL, serial TEXT NOT NULL,
			ca TEXT NOT NULL, blob BLOB NOT NULL, expires INTEGER NOT NULL, last_used INTEGER NOT NULL, PRIMARY KEY (hash, principal))`,
	`CREATE TABLE directory (principal TEXT PRIMARY KEY REFERENCES principals(name) ON DELETE CASCADE, dn TEXT NOT NULL, keys TEXT NOT NULL, rights TEXT NOT NULL,
			gone INTEGER NOT NULL, fetched INTEGER NOT NULL)`,
}

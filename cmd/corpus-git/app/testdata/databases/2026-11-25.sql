PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE migrations (room TEXT PRIMARY KEY, applied INTEGER NOT NULL);
INSERT INTO migrations VALUES('audit',2);
INSERT INTO migrations VALUES('access',18);
INSERT INTO migrations VALUES('registry',3);
INSERT INTO migrations VALUES('fleet',3);
INSERT INTO migrations VALUES('kv',3);
INSERT INTO migrations VALUES('notify',4);
INSERT INTO migrations VALUES('pipeline',4);
INSERT INTO migrations VALUES('approvals',3);
INSERT INTO migrations VALUES('checks',3);
INSERT INTO migrations VALUES('converge',1);
INSERT INTO migrations VALUES('kv/watch',1);
INSERT INTO migrations VALUES('configs',13);
INSERT INTO migrations VALUES('signals',9);
INSERT INTO migrations VALUES('writer',1);
CREATE TABLE audit (seq INTEGER PRIMARY KEY AUTOINCREMENT, time INTEGER NOT NULL, actor TEXT NOT NULL, fingerprint TEXT NOT NULL,
			origin TEXT NOT NULL, action TEXT NOT NULL, project TEXT NOT NULL, object TEXT NOT NULL, outcome TEXT NOT NULL, detail TEXT NOT NULL, deployment TEXT NOT NULL);
INSERT INTO audit VALUES(1,1795615781884449922,'root','','local','project create','app','','ok','','');
INSERT INTO audit VALUES(2,1795615781936306012,'root','','local','key add','','marie SHA256:HAoJYRj2ktlJhPEr1qGSaCzmju4L1lZKNXXv5DzQCHI','ok','','');
INSERT INTO audit VALUES(3,1795615782588267229,'root','','local','access grant','app','marie deploy','ok','','');
INSERT INTO audit VALUES(4,1795615786046311311,'root','','local','redeploy','app','none..none','ok','','7dfad654-1927-4007-ac7d-c38c6253aa0e');
CREATE TABLE principals (name TEXT PRIMARY KEY, kind TEXT NOT NULL, email TEXT NOT NULL, admin INTEGER NOT NULL, disabled INTEGER NOT NULL,
			implied INTEGER NOT NULL, added INTEGER NOT NULL, added_by TEXT NOT NULL);
INSERT INTO principals VALUES('marie','person','',0,0,1,1795615781934522886,'root');
CREATE TABLE IF NOT EXISTS "keys" (name TEXT PRIMARY KEY, principal TEXT NOT NULL REFERENCES principals(name) ON DELETE CASCADE, fingerprint TEXT NOT NULL UNIQUE,
			blob BLOB NOT NULL, type TEXT NOT NULL, comment TEXT NOT NULL, expires INTEGER NOT NULL DEFAULT 0, added INTEGER NOT NULL, added_by TEXT NOT NULL,
			last_used INTEGER NOT NULL DEFAULT 0);
INSERT INTO keys VALUES('marie','marie','SHA256:HAoJYRj2ktlJhPEr1qGSaCzmju4L1lZKNXXv5DzQCHI',X'0000000b7373682d65643235353139000000201995d52ae52d5174b7c2330cbddf5dccdf5c67c3ef599e70434ded24d3b5ac35','ssh-ed25519','marie',0,1795615781934522886,'root',0);
CREATE TABLE IF NOT EXISTS "grants" (project TEXT NOT NULL, principal TEXT NOT NULL REFERENCES principals(name) ON DELETE CASCADE, right TEXT NOT NULL,
			added INTEGER NOT NULL, added_by TEXT NOT NULL, PRIMARY KEY (project, principal, right));
INSERT INTO grants VALUES('app','marie','deploy',1795615782524800299,'root');
CREATE TABLE tokens (id TEXT PRIMARY KEY, name TEXT NOT NULL, principal TEXT NOT NULL REFERENCES principals(name) ON DELETE CASCADE, hash TEXT NOT NULL UNIQUE,
			projects TEXT NOT NULL, rights TEXT NOT NULL, read_only INTEGER NOT NULL, expires INTEGER NOT NULL, added INTEGER NOT NULL, added_by TEXT NOT NULL,
			last_used INTEGER NOT NULL DEFAULT 0, UNIQUE (principal, name));
CREATE TABLE certificates (hash TEXT NOT NULL, principal TEXT NOT NULL REFERENCES principals(name) ON DELETE CASCADE, key_id TEXT NOT NULL, serial TEXT NOT NULL,
			ca TEXT NOT NULL, blob BLOB NOT NULL, expires INTEGER NOT NULL, last_used INTEGER NOT NULL, PRIMARY KEY (hash, principal));
CREATE TABLE directory (principal TEXT PRIMARY KEY REFERENCES principals(name) ON DELETE CASCADE, dn TEXT NOT NULL, keys TEXT NOT NULL, rights TEXT NOT NULL,
			gone INTEGER NOT NULL, fetched INTEGER NOT NULL);
CREATE TABLE projects (name TEXT PRIMARY KEY, env TEXT NOT NULL, remote_less INTEGER NOT NULL, linked INTEGER NOT NULL,
			created INTEGER NOT NULL, destroying INTEGER NOT NULL DEFAULT 0, skeleton TEXT NOT NULL DEFAULT '', node TEXT NOT NULL DEFAULT '');
INSERT INTO projects VALUES('app','',1,1,1795615781874502942,0,'','');
CREATE TABLE nodes (name TEXT PRIMARY KEY, target TEXT NOT NULL, options TEXT NOT NULL, root TEXT NOT NULL, drained INTEGER NOT NULL,
			added INTEGER NOT NULL, added_by TEXT NOT NULL, said TEXT NOT NULL DEFAULT '{}') WITHOUT ROWID;
CREATE TABLE leases (project TEXT PRIMARY KEY, revision INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE kv (key TEXT PRIMARY KEY, value TEXT NOT NULL, revision INTEGER NOT NULL UNIQUE, deleted INTEGER NOT NULL, changed INTEGER NOT NULL, expires INTEGER NOT NULL,
			by TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE kv_revision (id INTEGER PRIMARY KEY CHECK (id = 1), revision INTEGER NOT NULL);
INSERT INTO kv_revision VALUES(1,0);
CREATE TABLE notifications (seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, at INTEGER NOT NULL, event TEXT NOT NULL, project TEXT NOT NULL, body TEXT NOT NULL);
CREATE TABLE deliveries (seq INTEGER PRIMARY KEY, notification INTEGER NOT NULL REFERENCES notifications(seq) ON DELETE CASCADE, sink TEXT NOT NULL, state TEXT NOT NULL,
			attempts INTEGER NOT NULL, next INTEGER NOT NULL, last INTEGER NOT NULL, error TEXT NOT NULL, UNIQUE (notification, sink));
CREATE TABLE deployments (id TEXT PRIMARY KEY, project TEXT NOT NULL, at INTEGER NOT NULL, trigger TEXT NOT NULL,
			state TEXT NOT NULL, facts TEXT NOT NULL, result TEXT NOT NULL);
INSERT INTO deployments VALUES('7dfad654-1927-4007-ac7d-c38c6253aa0e','app',1795615785251125070,'redeploy','live',X'7b226964223a2237646661643635342d313932372d343030372d616337642d633338633632353361613065222c2270726f6a656374223a22617070222c2274726967676572223a2272656465706c6f79222c22707573686572223a7b226b6579223a22726f6f74222c2266726f6d223a226c6f63616c227d2c226174223a22323032362d31312d32355431343a30393a34352e32353131323530375a222c22656e7669726f6e6d656e74223a2270726f64227d',X'7b227374617465223a226c697665222c2273746172746564223a22323032362d31312d32355431343a30393a34352e3431343231343433315a222c22656e646564223a22323032362d31312d32355431343a30393a34362e3034353830343338385a222c2274696d696e6773223a5b7b226e616d65223a2261726368697665222c226475726174696f6e5f6e73223a3133333634313139377d2c7b226e616d65223a2273796e63222c226475726174696f6e5f6e73223a3238383730397d2c7b226e616d65223a227072652d6465706c6f79222c226475726174696f6e5f6e73223a36313833317d2c7b226e616d65223a2272656c656173652d73796e63222c226475726174696f6e5f6e73223a31333034397d2c7b226e616d65223a226669787065726d73222c226475726174696f6e5f6e73223a3136393430317d2c7b226e616d65223a22696e7374616c6c2f3130305f736179222c226475726174696f6e5f6e73223a3333363532353834327d2c7b226e616d65223a22696e7374616c6c222c226475726174696f6e5f6e73223a3333363830323833337d2c7b226e616d65223a226669787065726d73222c226475726174696f6e5f6e73223a3333313139317d2c7b226e616d65223a22706f73742d6465706c6f79222c226475726174696f6e5f6e73223a35313737377d5d7d');
CREATE TABLE approvals (id TEXT PRIMARY KEY, project TEXT NOT NULL, at INTEGER NOT NULL, expires INTEGER NOT NULL, need INTEGER NOT NULL, plan TEXT NOT NULL,
			facts TEXT NOT NULL, state TEXT NOT NULL, reason TEXT NOT NULL DEFAULT '', who TEXT NOT NULL DEFAULT '', ended INTEGER NOT NULL DEFAULT 0, result TEXT NOT NULL DEFAULT '');
CREATE TABLE approval_votes (request TEXT NOT NULL REFERENCES approvals(id) ON DELETE CASCADE, name TEXT NOT NULL, fingerprint TEXT NOT NULL, address TEXT NOT NULL,
			at INTEGER NOT NULL, break_glass INTEGER NOT NULL, reason TEXT NOT NULL, PRIMARY KEY (request, name));
CREATE TABLE checks_watched (project TEXT PRIMARY KEY) WITHOUT ROWID;
INSERT INTO checks_watched VALUES('*');
CREATE TABLE check_periods (
			id INTEGER PRIMARY KEY, project TEXT NOT NULL, name TEXT NOT NULL, good INTEGER NOT NULL, since INTEGER NOT NULL, last INTEGER NOT NULL,
			runs INTEGER NOT NULL, took INTEGER NOT NULL, reason TEXT NOT NULL, answer TEXT NOT NULL, code TEXT NOT NULL, notified INTEGER NOT NULL);
CREATE TABLE converge (project TEXT PRIMARY KEY, boot TEXT NOT NULL, state TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO converge VALUES('app','ad60d116-700d-4bcb-bf30-96e1345094cc',X'7b226d6f6465223a22222c2272756e73223a302c226661696c6564223a302c22736b6970706564223a307d');
CREATE TABLE kv_watch (project TEXT PRIMARY KEY, seen INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE configs (id TEXT PRIMARY KEY, grp TEXT NOT NULL, file TEXT NOT NULL, source TEXT NOT NULL, inputs TEXT NOT NULL, outputs TEXT NOT NULL,
			options TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO configs VALUES('6851571df65af0a2ef42fff98a4d5907149f00a224e8ca85734fde14aa9dc7c7','salt','100_say.sls',replace('say:\n  cmd.run:\n    - name: echo hello\n','\n',char(10)),'','','');
CREATE TABLE config_deployments (seq INTEGER PRIMARY KEY, deployment TEXT NOT NULL, project TEXT NOT NULL, step TEXT NOT NULL, config TEXT NOT NULL REFERENCES configs(id),
			server TEXT NOT NULL, action TEXT NOT NULL, state TEXT NOT NULL CHECK (state IN ('IN_PROGRESS', 'COMPLETE', 'FAILED')), reason TEXT NOT NULL, inputs TEXT NOT NULL,
			outputs TEXT NOT NULL, began INTEGER NOT NULL, ended INTEGER NOT NULL);
INSERT INTO config_deployments VALUES(1,'7dfad654-1927-4007-ac7d-c38c6253aa0e','app','100_say','6851571df65af0a2ef42fff98a4d5907149f00a224e8ca85734fde14aa9dc7c7','vm','REDEPLOY','COMPLETE','','{}','',1795615785668718248,1795615785893657014);
CREATE TABLE signal_key (one INTEGER PRIMARY KEY CHECK (one = 1), key BLOB NOT NULL);
INSERT INTO signal_key VALUES(1,X'55d207bcf99e0ee4bc53d3bc51c0659ec64c2940427476fec74e2598abff4652');
CREATE TABLE waits (deployment TEXT NOT NULL, id TEXT NOT NULL, project TEXT NOT NULL, code TEXT NOT NULL, step TEXT NOT NULL, names TEXT NOT NULL,
			state TEXT NOT NULL CHECK (state IN ('open', 'waiting', 'complete', 'failed', 'cancelled')), reason TEXT NOT NULL, since INTEGER NOT NULL, until INTEGER NOT NULL,
			ended INTEGER NOT NULL, PRIMARY KEY (deployment, id)) WITHOUT ROWID;
CREATE TABLE wait_signals (deployment TEXT NOT NULL, wait TEXT NOT NULL, name TEXT NOT NULL, id TEXT NOT NULL, status TEXT NOT NULL, reason TEXT NOT NULL, sender TEXT NOT NULL,
			data TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (deployment, wait, name), UNIQUE (deployment, wait, id)) WITHOUT ROWID;
CREATE TABLE writer (one INTEGER PRIMARY KEY CHECK (one = 1), release TEXT NOT NULL);
INSERT INTO writer VALUES(1,'0.1.0-dev');
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('audit',4);
CREATE INDEX audit_project ON audit(project, seq);
CREATE INDEX keys_principal ON keys(principal);
CREATE INDEX grants_principal ON grants(principal);
CREATE INDEX deliveries_waiting ON deliveries(sink, next) WHERE state = 'waiting';
CREATE INDEX deliveries_state ON deliveries(state, last);
CREATE INDEX deployments_project ON deployments(project, at);
CREATE INDEX deployments_order ON deployments(project);
CREATE INDEX deployments_open ON deployments(state) WHERE state IN ('waiting', 'running');
CREATE INDEX approvals_project ON approvals(project);
CREATE INDEX check_periods_of ON check_periods (project, name, id);
CREATE INDEX config_deployments_server ON config_deployments(server, seq);
CREATE INDEX config_deployments_project ON config_deployments(project, seq);
CREATE INDEX config_deployments_of ON config_deployments(deployment, seq);
CREATE INDEX config_deployments_config ON config_deployments(config);
CREATE INDEX config_deployments_open ON config_deployments(state) WHERE state = 'IN_PROGRESS';
CREATE TRIGGER configs_change BEFORE UPDATE ON configs BEGIN SELECT RAISE(ABORT, 'a config never changes'); END;
CREATE TRIGGER configs_remove BEFORE DELETE ON configs WHEN EXISTS (SELECT 1 FROM config_deployments WHERE config = OLD.id)
			BEGIN SELECT RAISE(ABORT, 'a deployment refers to this config'); END;
CREATE TRIGGER config_deployments_bind BEFORE UPDATE OF deployment, project, step, config, server, action, inputs, began ON config_deployments
			BEGIN SELECT RAISE(ABORT, 'what a deployment binds never changes'); END;
CREATE TRIGGER config_deployments_final BEFORE UPDATE ON config_deployments WHEN OLD.state <> 'IN_PROGRESS'
			BEGIN SELECT RAISE(ABORT, 'this deployment has ended'); END;
CREATE TRIGGER config_deployments_unused AFTER DELETE ON config_deployments WHEN NOT EXISTS (SELECT 1 FROM config_deployments WHERE config = OLD.config)
			BEGIN DELETE FROM configs WHERE id = OLD.config; END;
CREATE TRIGGER config_deployments_forget AFTER DELETE ON deployments BEGIN DELETE FROM config_deployments WHERE deployment = OLD.id; END;
CREATE INDEX waits_project ON waits(project, since);
CREATE INDEX waits_release ON waits(project, id, code, since) WHERE state = 'complete';
CREATE INDEX waits_open ON waits(state) WHERE state IN ('open', 'waiting');
CREATE TRIGGER waits_final BEFORE UPDATE ON waits WHEN OLD.state NOT IN ('open', 'waiting') BEGIN SELECT RAISE(ABORT, 'this wait has ended'); END;
CREATE TRIGGER wait_signals_fixed BEFORE UPDATE ON wait_signals BEGIN SELECT RAISE(ABORT, 'a signal never changes'); END;
CREATE TRIGGER waits_forget AFTER DELETE ON deployments BEGIN
			DELETE FROM waits WHERE deployment = OLD.id; DELETE FROM wait_signals WHERE deployment = OLD.id; END;
COMMIT;

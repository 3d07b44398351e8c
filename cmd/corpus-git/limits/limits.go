// Package limits converts the limits of the configuration to those of the rooms that apply them.
//
// It owns nothing and applies nothing.
package limits

import (
	"corpus-git/git/pack"
	"corpus-git/git/upload"
	"corpus-git/project/config"
	"corpus-git/receive/session"
	"corpus-git/receive/sshd"
)

// SSH returns the limits on connections.
func SSH(l config.Limits) sshd.Limits {
	return sshd.Limits{
		Connections: l.MaxConnections, PerSource: l.MaxConnectionsPerSource, Unauthenticated: l.MaxUnauthenticated,
		UnauthenticatedPerSource: l.MaxUnauthPerSource, Sessions: l.MaxSessions, AuthTries: l.AuthTries,
		Failures: l.MaxLoginFailures, Penalty: l.LoginPenalty, Keepalive: l.KeepaliveInterval, Answer: l.KeepaliveTimeout,
		LoginGrace: l.AuthTimeout, KeyExchange: l.KexTimeout, Idle: l.IdleTimeout, ReadIdle: l.ReadTimeout, WriteIdle: l.WriteTimeout,
	}
}

// Pack returns the limits on a pack of a push or a submodule.
func Pack(l config.Limits, memory *pack.Memory) pack.Limits {
	return pack.Limits{
		PackBytes: int64(l.MaxPackBytes), Objects: l.MaxObjects, ObjectBytes: int64(l.MaxObjectBytes), DeltaBytes: int64(l.MaxDeltaBytes),
		DeltaDepth: l.MaxDeltaDepth, TotalBytes: int64(l.MaxTotalBytes), DeltaTotal: int64(l.MaxDeltaTotal),
		BaseMemory: int64(l.BaseMemory), Ratio: l.MaxRatio, Memory: memory,
	}
}

// Push returns the limits on what a client sends beside a pack.
func Push(l config.Limits) session.Limits {
	return session.Limits{
		Commands: l.MaxCommands, Options: orNone(l.MaxPushOptions), OptionBytes: l.MaxOptionBytes, RefName: l.MaxRefName, Shallow: l.MaxShallow, Files: l.MaxFiles, Drain: int64(l.MaxDrain), Unpack: l.UnpackLimit,
	}
}

// Upload returns the limits on requests of clones and fetches.
func Upload(l config.Limits) upload.Limits {
	return upload.Limits{Wants: l.MaxWants, Haves: l.MaxHaves, Commands: l.MaxRequests}
}

// orNone maps the limit 0 (none) to the value that means none in package receive, where 0 means the default.
func orNone(n int) int {
	if n == 0 {
		return -1
	}
	return n
}

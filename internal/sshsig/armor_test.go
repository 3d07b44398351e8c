package sshsig_test

import (
	"encoding/base64"

	"corpus-git/internal/sshsig"
)

func armor(raw []byte) []byte {
	return []byte(sshsig.Begin + "\n" + base64.StdEncoding.EncodeToString(raw) + "\n" + sshsig.End + "\n")
}

// Package account implements the state functions of accounts: user, group, ssh_auth, and webutil, whose accounts are those
// of an htpasswd file.
//
// Accounts change through the tools of the machine (useradd, usermod, groupadd, chage, …); passwords are passed only on
// their standard input.
package account

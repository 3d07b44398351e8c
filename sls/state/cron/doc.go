// Package cron implements the state functions of Salt's module cron: crontab entries, variables, and whole crontabs,
// through crontab(1).
package cron

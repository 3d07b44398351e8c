// Package notify sends notifications: it keeps an outbox in the database, and delivers it to the server's sinks.
//
// It owns the tables notifications and deliveries, the worker that delivers, and what each kind of sink is sent. Outbox.Add writes into
// the transaction of the record that the notification reports, so both are durable or neither is; the worker delivers afterwards, as often
// as it takes, and gives up after notify.attempts. A receiver sees each ID once or more, and never none.
//
// It does not decide what to notify, never changes a result, and redacts only the server's own secrets: notifications were redacted by the
// room that they come from. A crash leaves pending deliveries, which the next server continues; an interrupted attempt is repeated.
package notify

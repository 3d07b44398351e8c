// Package notify sends notifications: it keeps an outbox in the database, and delivers its contents to the server's sinks.
//
// It owns the tables notifications and deliveries, the worker that delivers, and the format for each kind of sink. Outbox.Add writes in
// the transaction of the record that the notification reports, so both are durable or neither is; the worker delivers afterwards, retrying
// as needed, and gives up after notify.attempts. Delivery is at least once: a receiver may see an ID more than once.
//
// It does not decide what to notify, never changes a result, and redacts only the server's own secrets: notifications are redacted by the
// room that they come from. A crash leaves pending deliveries, which the next server continues; an interrupted attempt is repeated.
package notify

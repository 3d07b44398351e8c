include:
  - makina-states.services.base.cron.services

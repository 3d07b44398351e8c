{#- cron of the distribution. Projects put their jobs into /etc/cron.d themselves; cron reads it each minute. #}
include:
  - makina-states.services.base.cron.prerequisites
  - makina-states.services.base.cron.configuration
  - makina-states.services.base.cron.services

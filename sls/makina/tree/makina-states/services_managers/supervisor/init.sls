{#- What projects know as programs of supervisord are units of systemd here: there is no supervisord. #}
include:
  - makina-states.services_managers.supervisor.hooks

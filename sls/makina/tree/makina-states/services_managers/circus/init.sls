{#- What projects know as watchers of circus are units of systemd here: there is no circusd. #}
include:
  - makina-states.services_managers.circus.hooks
  - makina-states.services_managers.circus.services

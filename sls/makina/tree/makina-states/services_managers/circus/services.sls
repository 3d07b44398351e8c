include:
  - makina-states.services_managers.circus.hooks

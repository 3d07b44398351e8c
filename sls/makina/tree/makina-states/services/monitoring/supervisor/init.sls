include:
  - makina-states.services_managers.supervisor

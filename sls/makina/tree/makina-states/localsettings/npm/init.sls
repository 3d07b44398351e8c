include:
  - makina-states.localsettings.nodejs

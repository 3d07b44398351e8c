include:
  - makina-states.services.http.nginx
  - makina-states.services.php.phpfpm

include:
  - makina-states.services.http.apache
  - makina-states.services.http.apache_modfastcgi
  - makina-states.services.php.phpfpm

# PILLAR.sample names no database of Django's, and .salt/archive.sls and .salt/300_app.sls read it.
makina-projects.mailman3:
  data:
    django_settings:
      DATABASES:
        default:
          ENGINE: django.db.backends.postgresql_psycopg2
          NAME: mailman3
          USER: mailman3
          PASSWORD: mailman3
          HOST: 127.0.0.1
          PORT: "5432"

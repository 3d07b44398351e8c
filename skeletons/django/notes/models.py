from django.db import models


class Note(models.Model):
    text = models.CharField(max_length=200)
    file = models.FileField(upload_to="notes", blank=True)

    def __str__(self):
        return self.text

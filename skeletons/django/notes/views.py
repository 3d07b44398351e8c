from django.http import HttpResponse, JsonResponse
from django.templatetags.static import static

from .models import Note


def home(request):
    style = static("notes/style.css")
    return HttpResponse(f'<link rel="stylesheet" href="{style}"><h1>It works</h1><p>{Note.objects.count()} notes</p>\n')


def health(request):
    Note.objects.exists()  # the database answers, and its migrations were applied
    return JsonResponse({"status": "ok"})

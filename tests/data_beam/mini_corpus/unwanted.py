"""."""

QUIZ = '{"question": "Which of the four chambers of the heart pumps blood into the aorta of an adult?", "choices": ["a", "b"]}\n'


def add(corpus):
    pass

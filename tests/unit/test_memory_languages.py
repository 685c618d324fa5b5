"""What is remembered in many languages: another value of the same thing is asked about, the same one is no news."""

from __future__ import annotations

import pytest

from tarsd.memory.compare import differs, same

report = pytest.mark.report

OTHER_VALUE = [
    ("My favorite football player is Ronaldo", "My current favorite football player is Messi"),
    ("I live in Berlin", "I moved to Munich"),
    ("User prefers dark mode", "User prefers light mode"),
    ("My email is a@b.c", "My email address is x@b.c"),
    ("My e-mail is a@b.c", "My email address is x@b.c"),
    ("My car is red", "My car is blue"),
    ("my car is red", "my car is blue"),
    ("Car: red", "Car: blue"),
    ("I work at Siemens", "I work for Bosch"),
    ("My daughter is eight", "My daughter is nine"),
    ("My daughter is eight", "My daughter is 9"),
    ("My older sister is Ann", "My sister is Eva"),
    ("Mein Auto ist rot", "Mein Auto ist blau"),
    ("Meine Tochter ist acht", "Meine Tochter ist 9"),
    ("Ich trage Größe M", "Ich trage Größe L"),
    ("Ma voiture est rouge", "Ma voiture est bleue"),
    ("Ma fille a huit ans", "Ma fille a 9 ans"),
    ("Mi coche es rojo", "Mi coche es azul"),
    ("Il mio medico è Rossi", "Il mio medico è Bianchi"),
    ("Moro em Lisboa", "Moro em Porto"),
    ("Ik woon in Utrecht", "Ik woon in Leiden"),
    ("Jag bor i Lund", "Jag bor i Malmö"),
    ("Jeg bor i Bergen", "Jeg bor i Oslo"),
    ("Asun Turussa nyt", "Asun Oulussa nyt"),
    ("Mieszkam w Krakowie", "Mieszkam w Warszawie"),
    ("Bydlím v Praze", "Bydlím v Brně"),
    ("Я живу в Москве", "Я живу в Киеве"),
    ("Мою сестру зовут Анна", "Мою сестру зовут Ольга"),
    ("Я живу у Києві", "Я живу у Львові"),
    ("Моя машина — красная", "Моя машина — синяя"),
    ("Μένω στην Αθήνα", "Μένω στην Πάτρα"),
    ("Doğum günüm 3 Mayıs", "Doğum günüm 4 Mayıs"),
    ("أسكن في القاهرة", "أسكن في بيروت"),
    ("אני גר בחיפה", "אני גר בירושלים"),
    ("मैं दिल्ली में रहता हूँ", "मैं मुंबई में रहता हूँ"),
    ("Tôi sống ở Hà Nội", "Tôi sống ở Đà Nẵng"),
    ("Saya tinggal di Bandung", "Saya tinggal di Medan"),
    ("我住在北京", "我住在上海"),
    ("我女儿八岁", "我女儿9岁"),
    ("我的车是红色的", "我的车是蓝色的"),
    ("我的医生是王医生", "我的医生是李医生"),
    ("東京に住んでいます", "大阪に住んでいます"),
    ("娘は八歳です", "娘は9歳です"),
    ("私の車は赤です", "私の車は青です"),
    ("ฉันอยู่ที่กรุงเทพ", "ฉันอยู่ที่ภูเก็ต"),
    ("ลูกสาวอายุแปดขวบ", "ลูกสาวอายุ 9 ขวบ"),
    ("서울에 살아요", "부산에 살아요"),
    ("내 딸은 여덟 살이다", "내 딸은 9 살이다"),
]
DENIED = [
    ("Я не ем мясо", "Я ем мясо"),
    ("Я не їм м'ясо", "Я їм м'ясо"),
    ("Nie jem mięsa", "Jem mięsa"),
    ("Jag äter inte kött", "Jag äter kött"),
    ("Jeg spiser aldri kjøtt", "Jeg spiser kjøtt"),
    ("Ik eet geen vlees", "Ik eet vlees"),
    ("Não como carne", "Como carne"),
    ("Non mangio carne", "Mangio carne"),
    ("Nem eszem húst", "Eszem húst"),
    ("Δεν τρώω κρέας", "Τρώω κρέας"),
    ("لا آكل اللحم", "آكل اللحم"),
    ("אני לא אוכל בשר", "אני אוכל בשר"),
    ("मैं मांस नहीं खाता", "मैं मांस खाता"),
    ("Saya tidak makan daging", "Saya makan daging"),
    ("Tôi không ăn thịt", "Tôi ăn thịt"),
    ("Et yemiyorum değil", "Et yemiyorum"),
    ("我喜欢咖啡", "我不喜欢咖啡"),
    ("我吃肉", "我从不吃肉"),
    ("私は肉を食べます", "私は肉を食べません"),
    ("肉を食べる", "肉を食べない"),
    ("ฉันกินเนื้อ", "ฉันไม่กินเนื้อ"),
    ("나는 고기를 먹는다", "나는 고기를 안 먹는다"),
    ("Nicht vegetarisch", "vegetarisch"),
]
SAME_VALUE = [
    ("My daughter is eight", "My daughter is 8"),
    ("I have two cats", "I have 2 cats"),
    ("I am forty-two", "I am 42"),
    ("I am twenty-one", "I am 21"),
    ("My sister is Anna", "My sister is called Anna"),
    ("My cat is named Otto", "My cat is called Otto"),
    ("My email is a@b.c", "My e-mail address is a@b.c"),
    ("My favorite color is blue", "My favourite colour is blue"),
    ("Meine Tochter ist acht", "Meine Tochter ist 8"),
    ("Ma fille a huit ans", "Ma fille a 8 ans"),
    ("Mi hija tiene ocho años", "Mi hija tiene 8 años"),
    ("Min dotter är åtta", "Min dotter är 8"),
    ("Мне восемь лет", "Мне 8 лет"),
    ("ابني عمره ٨", "ابني عمره 8"),
    ("मेरी उम्र ८ है", "मेरी उम्र आठ है"),
    ("我女儿八岁", "我女儿8岁"),
    ("我有两只猫", "我有2只猫"),
    ("我今年二十三岁", "我今年23岁"),
    ("娘は十二歳です", "娘は12歳です"),
    ("娘は８歳です", "娘は8歳です"),
    ("ลูกสาวอายุแปดขวบ", "ลูกสาวอายุ8ขวบ"),
    ("ลูกสาวอายุ๘ขวบ", "ลูกสาวอายุ8ขวบ"),
    ("내 딸은 여덟 살이다", "내 딸은 8 살이다"),
]
BOTH_TRUE = [
    ("I like tea", "I like coffee"),
    ("Люблю чай", "Люблю кофе"),
    ("我喜欢茶", "我喜欢咖啡"),
    ("猫が好き", "犬が好き"),
    ("I speak German", "I also speak French"),
    ("Ich spreche Deutsch", "Ich spreche auch Französisch"),
    ("My sister is Anna", "My brother is Otto"),
    ("My sister is Anna", "My car is red"),
    ("Моя сестра — Анна", "Мой брат — Иван"),
    ("我的医生是王医生", "我住在北京"),
    ("Otto is a cat", "Otto lives in Bergen"),
    ("The ferry is late", "Answer in German"),
]


@report("https://github.com/mem0ai/mem0/issues/5867")
@pytest.mark.parametrize(("known", "new"), OTHER_VALUE + DENIED)
def test_another_value_of_the_same_thing_is_asked_about_in_every_language(known: str, new: str) -> None:
    assert differs(known, new) and differs(new, known)
    assert not same(known, new)


@pytest.mark.parametrize(("known", "new"), SAME_VALUE)
def test_the_same_value_in_another_writing_is_no_news(known: str, new: str) -> None:
    assert same(known, new) and same(new, known)
    assert not differs(known, new) and not differs(new, known)


@pytest.mark.parametrize(("known", "new"), BOTH_TRUE)
def test_what_may_both_be_true_is_left_alone_in_every_language(known: str, new: str) -> None:
    assert not differs(known, new) and not differs(new, known)
    assert not same(known, new)

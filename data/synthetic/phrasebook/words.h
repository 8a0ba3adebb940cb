// The vocabulary of the phrasebook as tables for data/synthetic/phrasebook/lexicon.cpp.
#pragma once

#include <string_view>

namespace heed::phrases::tables {

/// `tags: english[/plural] italian[/plural] m|f [+tag]...`, entries separated by commas, `_` for a blank.
/// Verbs and adjectives define the tags' meaning. `mass`: no plural and no number; `single`: no plural;
/// `uova`: feminine in the plural.
inline constexpr std::string_view nouns = R"(
person: man/men uomo/uomini m, woman/women donna f, boy ragazzo m, girl ragazza f, child/children bambino m
person: friend amico/amici m, neighbour vicino m, guest ospite m, king re/re m, queen regina f
person: princess principessa f
person: tourist turista/turisti m, stranger sconosciuto m, thief/thieves ladro m
person job: student studente m, teacher maestro m, doctor medico/medici m, nurse infermiera f
person job: baker fornaio/fornai m
person job: cook cuoco/cuochi m, waiter cameriere m, farmer contadino m, fisherman/fishermen pescatore m
person job: painter pittore m, writer scrittore m, actress attrice f, driver autista/autisti m
person job: lawyer avvocato m
person job: policeman/policemen poliziotto m, gardener giardiniere m, scientist scienziato m
person job: soldier soldato m
person job: athlete atleta/atleti m, sculptor scultore m, tailor sarto m, dancer ballerina f
person job: journalist giornalista/giornalisti m
family: mother madre f +single, father padre m +single, brother fratello m, sister sorella f, son figlio m
family: daughter figlia f, uncle zio/zii m, aunt zia f, grandfather nonno m +single
family: grandmother nonna f +single
family: cousin cugino m, wife/wives moglie f +single +spouse, husband marito m +single +spouse
animal: dog cane m +pet, cat gatto m +pet, horse cavallo m +pet, bird uccello m, cow mucca f, goat capra f
animal: mouse/mice topo m, squirrel scoiattolo m, wolf/wolves lupo m, bear orso m, lion leone m
animal: duck anatra f +pet
animal: hen gallina f +pet, rabbit coniglio m +pet, donkey asino m, monkey scimmia f, butterfly farfalla f
animal: zebra zebra f
animal: fox volpe f, tiger tigre f, bee ape f
food solid: apple mela f +fruit, pear pera f +fruit, peach pesca f +fruit, lemon limone m +fruit
food solid: orange arancia/arance f +fruit
food solid: strawberry fragola f +fruit, tomato pomodoro m +fruit, potato patata f +cooked, onion cipolla f
food solid: egg uovo/uova m +uova +cooked
food solid: cake torta f +made, sandwich panino m +made, biscuit biscotto m
food solid mass: bread pane m +made, cheese formaggio m, meat carne f +cooked, fish pesce m +cooked
food solid mass: chocolate cioccolato m
food mass: honey miele m, rice riso m +cooked, sugar zucchero m, butter burro m
food: soup zuppa f +made +cooked, salad insalata f +made, ice_cream gelato m
drink mass: water acqua f, milk latte m, wine vino m, coffee caffè m +made, tea tè m +made, beer birra f
drink mass: juice succo m
text: book libro m, newspaper giornale m, magazine rivista f, map mappa f, letter lettera f +written
text: message messaggio m +written
text: novel romanzo m +written, diary diario m +written, story storia f +written +told, poem poesia f +written
clothes object: shirt camicia/camicie f, hat cappello m, shoe scarpa f, coat cappotto m, dress vestito m
clothes object: skirt gonna f
clothes object: jacket giacca f, scarf/scarves sciarpa f, boot stivale m, glove guanto m, tie cravatta f
vehicle object: car macchina f +drives, truck camion/camion m +drives, bicycle bicicletta f, boat barca f
vehicle: train treno m +awaited, bus autobus/autobus m +drives +awaited, ship nave f +awaited
vehicle: plane aereo m +awaited
building: house casa f, school scuola f, church chiesa f, hotel albergo/alberghi m, museum museo m
building: shop negozio m
building: restaurant ristorante m, castle castello m, bridge ponte m, tower torre f, station stazione f
building: hospital ospedale m
building: library biblioteca f, theatre teatro m, stadium stadio m, palace palazzo m
room: kitchen cucina f, room stanza f, garden giardino m, cellar cantina f
furniture object: table tavolo m +surface, chair sedia f +surface, bed letto m +surface
furniture object: desk scrivania f +surface
furniture object: sofa divano m +surface, shelf/shelves scaffale m +surface, carpet tappeto m
furniture object: lamp lampada f +fragile
furniture object: mirror specchio m +fragile, wardrobe armadio m, clock orologio m
thing object: key chiave f, pen penna f, pencil matita f, fork forchetta f, spoon cucchiaio/cucchiai m
thing object: knife/knives coltello m
thing object: toy giocattolo m +fragile, gift regalo m, ball palla f, coin moneta f, ring anello m
thing object: candle candela f
thing object: telephone telefono m +fragile, photograph fotografia f, picture quadro m, hammer martello m
thing object: ticket biglietto m
thing object: glass bicchiere m +fragile +dish, cup tazza f +fragile +dish, plate piatto m +fragile +dish
thing object: vase vaso m +fragile
thing object opens: bag borsa f +holds, backpack zaino m +holds, box scatola f +holds
thing object opens: suitcase valigia/valigie f +holds
thing object opens: bottle bottiglia f +fragile, umbrella ombrello m
opens: door porta f, window finestra f +fragile, gate cancello m, drawer cassetto m +holds
nature land: tree albero m +roof, river fiume m, mountain montagna f, lake lago/laghi m, island isola f
nature land: field campo m
nature land: forest bosco m, hill collina f, stone pietra f
nature: star stella f, cloud nuvola f, moon luna f +single, sun sole m +single, sea mare m +single
nature land picked: flower fiore m, rose rosa f, leaf/leaves foglia f
town: city città/città f +inhabited, village paese m +inhabited, street strada f, square piazza f
town: park parco m
town: beach spiaggia/spiagge f
song: song canzone f +told, melody melodia f
music: music musica f +mass, radio radio/radio f
instrument object: guitar chitarra f, violin violino m, flute flauto m, drum tamburo m, piano pianoforte m
lesson: lesson lezione f, question domanda f, problem problema/problemi m, language lingua f
lesson: exercise esercizio m
lesson: word parola f, rule regola f, idea idea f
film: film film/film m, show spettacolo m
)";

/// `tags: english italian [pre] [inv] [abs]`: `pre` precedes its noun, `inv` is invariable, `abs` has no
/// comparative, `state` of a person can be the reason for an action.
inline constexpr std::string_view adjectives = R"(
object picked opens: red rosso abs, green verde abs, blue blu inv abs, yellow giallo abs, white bianco abs
object picked opens: black nero abs, grey grigio abs, pink rosa inv abs
person animal object building town text song film music nature room opens: beautiful bello pre
animal object building vehicle town land room opens: small piccolo pre, big grande pre
object text song film building vehicle job opens: new nuovo pre
person animal object building vehicle text song film town opens: old vecchio pre
object building animal town opens: ugly brutto pre
person: young giovane pre, kind gentile, happy felice state, rich ricco state, poor povero state
person: nice simpatico
person: angry arrabbiato abs state, polite educato, honest onesto state, patient paziente, shy timido state
person: nervous nervoso state
person: tall alto, brave coraggioso, serious serio, generous generoso state
person animal: strong forte, thin magro, fat grasso, tired stanco state, intelligent intelligente
person animal: ill malato abs state
person animal: lazy pigro state, curious curioso state
person song music film text: sad triste state
person town room: quiet tranquillo
person clothes: elegant elegante
person text song film building town: famous famoso
text film lesson: important importante, interesting interessante, boring noioso, useful utile
text film lesson: long lungo pre, short breve pre
lesson: difficult difficile, easy facile, simple semplice
text film: funny divertente
text film lesson building: strange strano
food drink film text music: good buono pre abs
food drink: delicious squisito abs, fresh fresco
fruit: ripe maturo abs, sweet dolce
drink: hot caldo, cold freddo
object food drink vehicle: expensive caro
object food: cheap economico
thing furniture: heavy pesante, light leggero, precious prezioso, broken rotto abs
object room opens: clean pulito, dirty sporco
holds dish: empty vuoto abs
furniture clothes: comfortable comodo
building furniture vehicle: modern moderno
building town: ancient antico
vehicle: fast veloce, slow lento
animal: dangerous pericoloso, wild feroce abs
person text film song music drink vehicle: Italian italiano abs, French francese abs, English inglese abs
person text film song music drink vehicle: German tedesco abs
)";

/// `frame: english[/past] italian [key=value]... [flag]... | subject tags | object tags`.
/// Keys: pp participle, fut future stem, stem of imperfect and gerund, imp imperative.
/// Flags: isc; essere (its auxiliary); stative (its past is the imperfect); first (starts a chain of
/// actions); unwilled (no imperative).
inline constexpr std::string_view verbs = R"(
act: buy/bought comprare first | person | food drink text clothes vehicle thing furniture instrument
act: sell/sold vendere | person | food clothes vehicle thing furniture instrument
act: read/read leggere pp=letto | person | text
act: write/wrote scrivere pp=scritto first | person | written
act: translate tradurre pp=tradotto fut=tradurr stem=traduc | person | text
act: eat/ate mangiare | person animal | food
act: drink/drank bere pp=bevuto fut=berr stem=bev | person animal | drink
act: cook cucinare | person | cooked
act: prepare preparare first | person | made cooked
act: make/made fare pp=fatto fut=far stem=fac imp=fa' | person | made
act: cut/cut tagliare | person | solid
act: order ordinare first | person | food drink
act: taste assaggiare | person | food drink
act: pick raccogliere pp=raccolto first | person | fruit picked
act: open aprire pp=aperto first | person | opens
act: close chiudere pp=chiuso | person | opens
act: see/saw vedere unwilled pp=visto fut=vedr first | person animal | person animal object building nature
act: watch guardare | person animal | film animal person nature vehicle
act: admire ammirare | person | nature building town picked
act: paint dipingere pp=dipinto | person | opens building furniture nature
act: draw/drew disegnare | person | animal nature building picked
act: clean pulire isc | person | furniture room building opens
act: wash lavare first | person | clothes vehicle dish fruit
act: carry portare | person animal | thing furniture
act: take/took prendere pp=preso first | person | thing clothes text food
act: find/found trovare unwilled first | person animal | thing clothes text animal
act: look_for cercare first | person animal | thing clothes text person animal
act: lose/lost perdere unwilled pp=perso | person | thing clothes text
act: forget/forgot dimenticare unwilled | person | thing clothes lesson
act: remember ricordare unwilled | person | song lesson film person
act: hide/hid nascondere pp=nascosto | person animal | thing food
act: break/broke rompere unwilled pp=rotto | person animal | fragile
act: repair riparare first | person | vehicle furniture fragile
act: throw/threw lanciare | person | thing
act: push spingere pp=spinto | person | vehicle furniture
act: touch toccare | person | object animal
act: choose/chose scegliere pp=scelto first | person | object text food
act: wait_for aspettare | person animal | person awaited
act: call chiamare first | person | person pet
act: help aiutare | person | person
act: meet/met incontrare unwilled first | person animal | person animal
act: invite invitare | person | person
act: greet salutare | person | person
act: thank ringraziare | person | person
act: follow seguire | person animal | person animal
act: kiss baciare | person | person
act: hug abbracciare | person | person pet
act: love amare stative | person | person pet town song
act: hate odiare stative | person | film song food lesson
act: know/knew conoscere stative pp=conosciuto | person | person town song building
act: visit visitare | person | building town
act: drive/drove guidare | person | drives
act: listen_to ascoltare | person | song music person
act: hear/heard sentire unwilled | person animal | song music person animal
act: sing/sang cantare | person | song
act: play suonare | person | instrument
act: study studiare | person | lesson
act: learn imparare | person | lesson song
act: understand/understood capire unwilled isc | person | lesson text film
act: explain spiegare | person | lesson
act: finish finire isc | person | text lesson
act: wear/wore portare stative | person | clothes
act: have/had avere pp=avuto fut=avr stative | person | object pet
act: want volere pp=voluto fut=vorr stative | person | object food drink pet text
act: build/built costruire isc | person | building furniture
give: give/gave dare fut=dar imp=da' | person | thing text food clothes
give: show mostrare | person | object text building
give: send/sent mandare | person | text thing clothes
give: lend/lent prestare | person | thing text clothes vehicle
give: offer offrire pp=offerto | person | food drink
give: bring/brought portare | person | thing text food drink clothes
give: tell/told raccontare | person | told
do: sleep/slept dormire | person animal |
do: work lavorare | person |
do: run/ran correre pp=corso | person animal |
do: swim/swam nuotare | person animal |
do: walk camminare | person animal |
do: smile sorridere pp=sorriso | person |
do: laugh ridere pp=riso | person |
do: cry piangere pp=pianto | person |
do: play giocare | person animal |
do: dance ballare | person |
do: sing/sang cantare | person |
do: travel viaggiare | person |
do: speak/spoke parlare | person |
do: wait aspettare | person animal |
do: cook cucinare | person |
do: rest riposare | person animal |
go: go/went andare essere fut=andr imp=va' | person |
go: come/came venire essere pp=venuto fut=verr | person |
go: return tornare essere | person |
leave: leave/left partire essere | person |
leave: go_out/went_out uscire essere | person animal |
leave: arrive arrivare essere | person |
leave: fall/fell cadere unwilled essere fut=cadr | person animal |
stay: stay restare essere | person animal |
stay: live abitare stative | person |
self: get_up/got_up alzarsi | person |
self: wake_up/woke_up svegliarsi | person animal |
self: fall_asleep/fell_asleep addormentarsi unwilled | person animal |
self: get_dressed/got_dressed vestirsi | person |
self: sit_down/sat_down sedersi fut=sieder | person |
self: have_fun/had_fun divertirsi | person |
self: get_bored/got_bored annoiarsi unwilled | person |
self: get_angry/got_angry arrabbiarsi unwilled | person |
be: be/was essere pp=stato fut=sar essere stative | person |
can: can/could potere fut=potr stative | person |
must: must/had_to dovere fut=dovr stative | person |
know: know/knew sapere fut=sapr stative | person |
say: say/said dire pp=detto stem=dic | person |
put: put/put mettere pp=messo | person | thing text clothes food
like: like piacere essere pp=piaciuto | person |
stare: stand/stood stare fut=star | person |
)";

/// Irregular presents: io, tu, lui, noi, voi, loro.
inline constexpr std::string_view presents = R"(
tradurre: traduco traduci traduce traduciamo traducete traducono
bere: bevo bevi beve beviamo bevete bevono
fare: faccio fai fa facciamo fate fanno
raccogliere: raccolgo raccogli raccoglie raccogliamo raccogliete raccolgono
scegliere: scelgo scegli sceglie scegliamo scegliete scelgono
avere: ho hai ha abbiamo avete hanno
volere: voglio vuoi vuole vogliamo volete vogliono
dare: do dai dà diamo date danno
andare: vado vai va andiamo andate vanno
venire: vengo vieni viene veniamo venite vengono
uscire: esco esci esce usciamo uscite escono
sedersi: siedo siedi siede sediamo sedete siedono
essere: sono sei è siamo siete sono
potere: posso puoi può possiamo potete possono
dovere: devo devi deve dobbiamo dovete devono
sapere: so sai sa sappiamo sapete sanno
dire: dico dici dice diciamo dite dicono
piacere: piaccio piaci piace piacciamo piacete piacciono
stare: sto stai sta stiamo state stanno
)";

/// `to | at | from | a, in | da`, in both languages.
inline constexpr std::string_view places = R"(
to the market|at the market|from the market|al mercato|dal mercato
to the station|at the station|from the station|alla stazione|dalla stazione
to school|at school|from school|a scuola|da scuola
home|at home|from home|a casa|da casa
to the office|in the office|from the office|in ufficio|dall'ufficio
to the library|in the library|from the library|in biblioteca|dalla biblioteca
to the park|in the park|from the park|al parco|dal parco
to the restaurant|at the restaurant|from the restaurant|al ristorante|dal ristorante
to the theatre|at the theatre|from the theatre|a teatro|dal teatro
to the cinema|at the cinema|from the cinema|al cinema|dal cinema
to the hospital|at the hospital|from the hospital|all'ospedale|dall'ospedale
to the beach|on the beach|from the beach|in spiaggia|dalla spiaggia
to the bank|at the bank|from the bank|in banca|dalla banca
to the mountains|in the mountains|from the mountains|in montagna|dalla montagna
to the seaside|at the seaside|from the seaside|al mare|dal mare
to the countryside|in the countryside|from the countryside|in campagna|dalla campagna
to the museum|at the museum|from the museum|al museo|dal museo
to the airport|at the airport|from the airport|all'aeroporto|dall'aeroporto
to the stadium|at the stadium|from the stadium|allo stadio|dallo stadio
to the swimming pool|at the swimming pool|from the swimming pool|in piscina|dalla piscina
to Rome|in Rome|from Rome|a Roma|da Roma
to Milan|in Milan|from Milan|a Milano|da Milano
to Florence|in Florence|from Florence|a Firenze|da Firenze
to Venice|in Venice|from Venice|a Venezia|da Venezia
to Naples|in Naples|from Naples|a Napoli|da Napoli
to Turin|in Turin|from Turin|a Torino|da Torino
to Paris|in Paris|from Paris|a Parigi|da Parigi
to London|in London|from London|a Londra|da Londra
to Italy|in Italy|from Italy|in Italia|dall'Italia
to France|in France|from France|in Francia|dalla Francia
to Spain|in Spain|from Spain|in Spagna|dalla Spagna
to England|in England|from England|in Inghilterra|dall'Inghilterra
to Germany|in Germany|from Germany|in Germania|dalla Germania
)";

/// `english | italian | tenses`: h habitual, p past, u used to, f future, n now.
inline constexpr std::string_view times = R"(
every day|ogni giorno|hu
every morning|ogni mattina|hu
every evening|ogni sera|hu
every week|ogni settimana|hu
every summer|ogni estate|hu
in the morning|la mattina|hu
in the evening|la sera|hu
on Sundays|la domenica|hu
on Saturdays|il sabato|hu
in summer|in estate|hu
in winter|in inverno|hu
today|oggi|hf
now|adesso|n
at this moment|in questo momento|n
yesterday|ieri|p
yesterday evening|ieri sera|p
this morning|questa mattina|p
last night|la notte scorsa|p
last week|la settimana scorsa|p
last month|il mese scorso|p
last year|l'anno scorso|p
last summer|l'estate scorsa|p
an hour ago|un'ora fa|p
two days ago|due giorni fa|p
three weeks ago|tre settimane fa|p
a year ago|un anno fa|p
on Monday|lunedì|pf
on Tuesday|martedì|pf
on Wednesday|mercoledì|pf
on Thursday|giovedì|pf
on Friday|venerdì|pf
on Saturday|sabato|pf
on Sunday|domenica|pf
tomorrow|domani|f
tomorrow morning|domani mattina|f
tomorrow evening|domani sera|f
this evening|questa sera|f
next week|la settimana prossima|f
next month|il mese prossimo|f
next year|l'anno prossimo|f
in an hour|tra un'ora|f
in two days|tra due giorni|f
in a week|tra una settimana|f
)";

/// `english | italian`: adverbs of manner.
inline constexpr std::string_view manners = R"(
slowly|lentamente
quickly|velocemente
well|bene
badly|male
quietly|in silenzio
a lot|molto
a little|un po'
)";

/// `name m|f`
inline constexpr std::string_view names =
    "Anna f, Marco m, Luca m, Maria f, Giulia f, Paolo m, Sofia f, Pietro m, Chiara f, Elena f, Davide m, "
    "Carlo m";

/// From two upwards.
inline constexpr std::string_view numbers =
    "two due, three tre, four quattro, five cinque, six sei, seven sette, eight otto, nine nove, ten dieci, "
    "eleven undici, twelve dodici, twenty venti, thirty trenta, forty quaranta, a_hundred cento";

}  // namespace heed::phrases::tables

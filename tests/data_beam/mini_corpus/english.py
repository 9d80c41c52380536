"""English prose, seven sentences on each of 30 subjects. Written for these tests."""

_TEXT = """
tea: The leaves are picked by hand in spring, when the young shoots are still soft and pale.
They are spread on bamboo trays and left to wither for a night in a room with open windows.
After that the leaves are rolled, which breaks their cells and lets the juice meet the air.
How long this lasts decides whether the tea will be green, half dark or black.
A short time over a charcoal fire stops the change and dries what is left.
Sorting follows, and the broken leaves are sold to those who fill paper bags with them.
Good tea keeps for a year in a closed tin, and some kinds are better after ten.

bridges: A bridge of stone carries its load by pushing, and so each arch leans on the next one.
When one arch falls during a flood, its neighbours have nothing left to lean on.
Builders therefore made every third pier so thick that it could stand alone.
Iron changed all of that, because a beam can be pulled as well as pushed.
The first long spans hung from chains whose links were forged one by one in small shops.
Wind was the enemy that nobody had counted with, and several decks were torn apart by it.
Today a model of each new bridge is put into a tunnel and shaken before anything is poured.

bees: A hive in June may hold fifty thousand workers and a single queen who is mother to all.
The workers clean cells for the first days of their lives and only later fly out for nectar.
One who has found a rich field returns and dances on the comb for her sisters.
The angle of the dance to the vertical is the angle between the field and the sun.
Drones do no work at all and are driven out when the nights become cold.
In winter the bees form a ball, and those on the outside change places with those within.
A strong colony needs about fifteen kilograms of honey to live until the willows flower.

glaciers: Snow that does not melt in summer is pressed by what falls on it in the years after.
Between the grains there is air, and most of it is squeezed out before the tenth winter.
What remains are small bubbles that keep the air of the time when the snow fell.
A core drilled from the middle of an ice sheet is therefore a library of old air.
The ice itself flows downhill like very thick honey, faster at the top than at the bed.
Stones that are frozen into it scratch the rock below and leave long parallel lines.
When the climate warms, the tongue draws back and leaves its rubble behind as a low wall.

asthma: Asthma is a disease of the airways in which they become narrow for a time and then open.
The muscles around the small tubes contract, and the lining swells and makes more mucus.
Patients wheeze, cough at night and feel that they cannot empty their lungs.
Pollen, cold air, smoke and infections of the nose are among the common triggers.
An inhaled drug that relaxes the muscles brings relief within a few minutes.
It does nothing against the inflammation, for which a steroid is inhaled every day.
Those who need relief more than twice a week should have their treatment looked at again.

printing: Before type was cast in metal, a page was carved into a block of pear wood.
A good carver finished one page in a day, and the block lasted for many thousand copies.
Single letters can be used again for another page, which is why they won in Europe.
For a script with many thousand signs the advantage was much smaller than it seems.
The letters were set in a frame from right to left, inked with a leather ball and pressed.
Proofs were read aloud by one man while another followed the manuscript with his finger.
Most early books have no page numbers, because the binder went by the first words of each sheet.

potatoes: The potato came from the high valleys of the Andes, where hundreds of kinds are grown.
Farmers there freeze the tubers at night and tread the water out of them by day.
What is left is light, keeps for years and can be carried over the passes.
In Europe the plant was at first a flower for gardens of the rich.
Priests in some villages preached against it since it was not named in the Bible.
Hunger ended the discussion, for a field of potatoes feeds twice as many as one of rye.
The blight of 1845 showed what happens when a whole country plants a single variety.

vaccines: A vaccine shows the immune system a part of a germ, or a germ that cannot do harm.
Cells that recognise it multiply, and some of them stay in the body for decades.
When the real germ arrives later, they answer within hours instead of weeks.
Two or three doses are usually given because the second answer is stronger than the first.
If nearly everyone is protected, the germ finds no path through the population.
That shields newborn children and those whose immune system is too weak for a vaccine.
Smallpox was ended in this way, and no case has been seen since the year 1978.

clocks: A pendulum of one metre takes almost exactly one second for each of its swings.
The wheel that drives it is stopped at every swing and let go by one tooth.
Heat makes the rod longer, so that the clock is slow in summer and fast in winter.
Rods of two metals were joined in such a way that one lifts what the other lowers.
At sea a pendulum is useless, and for a long time captains did not know their longitude.
A carpenter from Yorkshire built a watch with a spring that lost five seconds in two months.
He was seventy before the board that had promised the prize paid him the rest of it.

sleep: Sleep is not one state but a chain of them that repeats about every ninety minutes.
In the first part of the night the deep stages take up most of the time.
Growth hormone is released then, and it is hard to wake the sleeper.
Toward morning the dreams become longer, the eyes move and the muscles are without tension.
A person who is kept awake for a night remembers less of what was learned on the day before.
Light in the evening delays the clock in the brain, and that of small screens is enough.
Most adults need between seven and nine hours, and very few are well with less than six.

harbours: The old harbour lies behind a mole that was begun by the monks in the twelfth century.
Sand has filled its inner part since then, and sheep graze where ships were once unloaded.
A lighthouse of brick stands at the end and has been without a keeper for forty years.
Fishing boats still go out at four in the morning when the weather allows it.
Their catch is sold in a hall beside the quay before most of the town has had breakfast.
In summer visitors come for the regatta, and every bed within ten miles is taken.
The council has asked for money to dig out the channel, but nobody expects an answer soon.

diabetes: In type 2 diabetes the body still makes insulin, but muscles and liver hardly heed it.
The pancreas makes more and more of it until after some years it begins to fail.
Sugar in the blood then rises, at first only after meals and later also in the morning.
Many people notice nothing for years while small vessels in eyes and kidneys are harmed.
Losing a tenth of the weight can bring the values back to normal in the early time.
Metformin is the drug that most patients are given first, because it is cheap and safe.
Feet should be looked at every day, since a wound that is not felt does not heal well.

violins: The top of a violin is made of spruce that grew slowly on a northern slope.
Its back and ribs are of maple, and the fingerboard is of ebony or something like it.
Thickness is measured at a hundred points, and the plate is tapped and listened to again.
A small post of wood stands inside between the two plates and has no glue at all.
The French call it the soul, since moving it by a hair changes the whole sound.
Varnish protects the wood from sweat and gives it the colour of honey or of chestnuts.
In blind tests players could not tell the famous old instruments from good new ones.

rivers: A river that runs through a plain never keeps to the same bed for long.
Water in a bend is faster on the outside, where it eats away the bank.
On the inside it is slow and drops the sand that it has brought from above.
So each bend grows until the river cuts through its neck and leaves a lake behind.
Dams hold the sand back, and the delta that lived on it begins to sink into the sea.
Dikes protect the towns but raise the flood for those who live further down.
In some countries dikes are now moved back so that the river has room to spread.

bread: Flour, water, salt and time are all that a loaf needs, if the time is long enough.
A dough that is left alone begins to sour because yeasts and bacteria live on every grain.
The baker feeds a part of it each day and keeps it for years in a stone jar.
Kneading joins the proteins to a net that holds the gas as the dough rises.
In the oven the crust sets first, so the loaf is cut with a blade to let it open.
Steam in the first ten minutes keeps the surface soft and gives it a shine later.
Bread of rye should rest for a day before it is cut, and it is at its best on the third.

fractures: A broken wrist is the fracture that doctors see most often in people over fifty.
The hand is stretched out in a fall, and the radius gives way close to the joint.
If the pieces stand well, a cast for six weeks is all that is required.
Otherwise they are set under local anaesthesia and held by wires or by a small plate.
Fingers must be moved from the first day, or they become stiff and swollen.
A fracture after a simple fall should be a reason to measure the density of the bones.
Treatment with tablets can halve the risk that a vertebra or a hip breaks next.

maps: Every flat map of the earth is wrong somewhere, since the peel of an orange does not lie flat.
One kind keeps angles, which sailors need, and blows up the lands near the poles.
Another keeps areas and presses the shapes of continents like wet clay.
Surveyors once measured a single base line with rods and all the rest with angles.
From the tops of hills they covered whole kingdoms with a net of triangles.
Two expeditions found that a degree is longer in Lapland than it is in Peru.
With that it was settled that the earth is flattened at the poles, as Newton had said.

migraine: A migraine is more than a headache, and for many the pain is not the worst of it.
Some hours before an attack people yawn, are hungry for sweet things or cannot find words.
One in four then sees a zigzag line that grows slowly and leaves a blind spot.
The pain is mostly on one side, beats with the pulse and becomes worse on the stairs.
Light and noise are hard to bear, and most patients lie down in a dark room.
Drugs called triptans help if they are taken early, but not on more than ten days a month.
Whoever takes pain killers more often may get a daily headache from the tablets themselves.

owls: An owl hears a mouse under snow, and its ears are not at the same height.
A sound from below reaches one of them a little sooner and a little louder.
Feathers around the face form a dish that leads the sound to both openings.
The edge of the wing is like a comb, so that the air passes over it without noise.
Eyes of that size cannot turn, and the bird must turn its head to look around.
What is not digested, hair and bones, is brought up again as a grey ball.
Children in school take such balls apart and count how many voles were eaten in a night.

glass: Glass is made of sand, soda and lime, which melt together at about fifteen hundred degrees.
Without soda the sand would need a far hotter fire, and without lime water would dissolve it.
Iron in the sand makes it green, and a little manganese takes the colour away.
For a window the melt is poured on a bath of liquid tin, where it spreads by itself.
The ribbon is drawn off at the other end through a long oven in which it cools slowly.
If it cooled in the open air, the inside would pull at the skin until it cracked.
Old windows are thicker at the foot because of how they were made, not because they flow.

kidneys: Each kidney has about a million small filters, and a person can live with far fewer.
Blood is pressed through a fine sieve that holds back the cells and the proteins.
Most of the water and salt is then taken back while waste goes on to the bladder.
High blood pressure harms the sieve, and a harmed kidney raises the pressure further.
Protein in the urine is the first sign and can be found with a strip of paper.
Drugs that lower the pressure inside the filter slow the loss by years.
When less than a tenth of the function is left, dialysis or a transplant is needed.

railways: The first trains were to be no faster than a horse, and a man with a flag walked ahead.
Twenty years later one could leave the capital after breakfast and dine by the sea.
Each town had kept its own noon until then, by the sun over its own church.
Timetables made that impossible, and the stations got clocks with two minute hands.
Engineers laid the line along rivers, because a slope of one in fifty was too much.
Where a mountain could not be passed they bored from both sides and met within a hand.
Many small lines were closed when buses came, and now people walk there on Sundays.

wool: A sheep gives about four kilograms of wool when it is shorn in early summer.
The fleece comes off in one piece and is sorted by how fine the hairs are.
Washing takes out fat, which is sold to makers of soap and of ointments.
Then it is combed until all the fibres lie in one direction and can be spun.
Wool keeps warm even if it is wet, since each hair is curled and holds air.
Moths eat it, and people have put lavender and cedar between their coats for ages.
Cloth that is beaten in warm water with clay becomes so dense that rain runs off.

stroke: A stroke begins from one minute to the next, and it does not hurt in most cases.
One corner of the mouth hangs down, an arm sinks or the words come out wrong.
Whoever sees this should call an ambulance at once and note the time.
A scan shows whether a vessel is closed or whether there is blood in the brain.
If it is closed, the clot can be dissolved during the first four and a half hours.
In large vessels it is pulled out with a fine wire through the artery of the groin.
Training starts on the second day, because the brain learns best in the first weeks.

lighthouses: A fire on a hill was the first light for sailors, and it was fed by monks.
Coal took the place of wood and needed a man with a shovel through the whole night.
Lamps with oil were clean but weak until mirrors were set behind them.
A physicist then built a lens out of rings that was thin and caught nearly all the light.
Each tower has its own rhythm, and a chart tells which one blinks twice in ten seconds.
Fog swallows any light, so that bells, guns and horns were added in the course of time.
Satellites have made most of it needless, and some of the towers have become hotels.

salt: Sea water holds thirty-five grams of salt in a litre, and the sun takes the rest away.
The ponds are shallow, and the brine moves from one to the next as it thickens.
Gypsum falls out first and is left behind before the salt begins to form.
A crust as thin as paper that swims on a calm evening is sold at a high price.
Under the hills lies the salt of older seas, and miners have followed it for ages.
Meat, fish and cabbage were kept through the winter with it in every house.
Whoever owned the salt could tax everybody, and more than one revolt began with that.

anaemia: Blood with too few red cells or too little of their pigment carries less oxygen.
The skin is pale, the heart beats fast and stairs become a trouble.
Lack of iron is by far the most common cause, mostly in women who lose blood each month.
In men and in older people one has to look for a bleeding in the stomach or bowel.
Iron tablets should be taken on an empty stomach and only every other day.
They turn the stool black, which is harmless, and some people get cramps from them.
The stores are full again after three months, and one should not stop before that.

libraries: In the old library the books were chained to the desks, with their backs to the wall.
Readers stood, because there was little heat and nobody stayed for longer than an hour.
A list at the end of each desk said which books belonged to it.
Later the shelves grew to the ceiling and ladders on wheels were needed.
The first catalogues on cards were written on the backs of playing cards during a revolution.
A machine now brings a book from the cellar in four minutes, and nobody sees where it lies.
Still there are people who come only to walk along the shelves and be surprised.

copper: Copper was the first metal that people worked, since it is sometimes found pure.
Hammering makes it hard and brittle, and a fire makes it soft again.
With one part of tin in ten it becomes bronze, which is harder and easier to cast.
Tin is rare, and ships brought it over a thousand miles from islands in the west.
A smelter gave off smoke with arsenic in it, and the smith of the legends has a limp.
Today most of the metal goes into wires, because only silver conducts better.
A third of it comes from scrap, as nothing is lost when copper is melted again.

knees: Between the bones of the knee lie two rings of cartilage that spread the load.
They are torn by a twist of the bent leg, on the pitch or when one rises from the floor.
In young people a fresh tear near the edge can be sewn, since there are vessels.
After fifty most tears are part of wear, and exercises help as much as an operation.
The front ligament breaks with a crack, and the joint is full of blood by the evening.
Not everybody needs a new one, but those who play football mostly want it.
Strong muscles of the thigh are the best protection, whatever has been done before.
"""


def _topics() -> dict[str, list[str]]:
    topics: dict[str, list[str]] = {}
    for block in _TEXT.strip().split("\n\n"):
        name, _, text = block.partition(": ")
        topics[name] = list(text.split("\n"))
    return topics


TOPICS = _topics()
"""Sentences by subject."""

#include "sample_text.h"

namespace onset::app {

std::string_view sample_text() {
  return R"(The harbour of the little town had been built for ships that no longer came. In the middle of the nineteenth century, when the herring still ran close to the coast, two hundred boats had been moored along the stone quay, and the women who salted the fish worked by torchlight until morning. Now there were eleven boats left, most of them owned by people who fished only at the weekend, and the old salting house had been turned into a museum that opened on Tuesdays and Fridays.

Anna Lindqvist had the key to the museum because nobody else wanted it. She was a retired teacher of mathematics, and she had first agreed to look after the collection for a single summer. That was nine years ago. She had since read every ledger in the archive, and she knew how many barrels had left the harbour in each month between 1851 and 1893, who had bought them, and what they had paid. On quiet days she drew graphs of the numbers on squared paper. The graphs showed what everybody in the town already knew: the catch had grown slowly for thirty years, had stayed level for ten, and had then fallen to almost nothing in the space of four winters.

What the graphs did not show was why. The people of the town had always had an explanation. Some said that the water had become too warm, others that the large steam trawlers from the south had taken the fish before they reached the coast. A third group, which was small but loud, blamed the lighthouse. It had been finished in 1889, and they believed that its beam had frightened the herring away. Anna thought that this was nonsense, but she was careful never to say so in front of visitors, since the lighthouse theory was the part of the tour that they liked best.

One morning in October a young man came in from the rain and asked whether he could see the weather records. He was a doctoral student, he explained, and he was trying to reconstruct the temperature of the sea along the coast before there were regular measurements. He had heard that the keepers of the lighthouse had written down the temperature of the water twice a day. Were these books still there?

They were. Anna fetched them from the upper floor, fourteen volumes bound in grey cloth, and put them on the long table by the window. The student opened the first one and began to copy numbers into his computer. He worked without speaking for more than three hours. At noon she brought him a cup of coffee and a sandwich, and he looked up as if he had forgotten where he was.

"It is cold," he said.

"I can turn on the heating," said Anna.

"No, the water. In the winter of 1890 it was almost two degrees colder than in the years before, and it stayed cold for the next three winters. Then it went back to normal. If the herring spawned where you say they did, their eggs would not have survived."

Anna sat down on the other side of the table. She took the sheet with her graph of the barrels out of the drawer, and he turned his screen so that she could see the curve of the temperatures. They laid one beside the other. For a while neither of them said anything. Outside the rain had stopped, and the light that came through the window was pale and very clear.

"So it was neither the trawlers nor the lighthouse," she said at last.

"It may have been all of them a little," said the student. "But I think that it was mostly the cold. I would have to compare it with other places before I could be sure. Is there another harbour near here that kept its books as well as this one?"

"There is one," said Anna. "It is on the island, two hours by boat. Their museum is better than ours, and the woman who runs it does not like me, because I once found a mistake in her catalogue. I will call her this afternoon, and you can go across tomorrow, if the wind allows it."
)";
}

}  // namespace onset::app

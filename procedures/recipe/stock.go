package recipe

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
)

var (
	rawTag       = regexp.MustCompile(`\{%-?\s*(raw|endraw)\s*-?%\}`)
	archivedPath = regexp.MustCompile(`/archives/\d{4}-\d\d-\d\d_\d\d_\d\d-\d\d_[0-9a-f-]{36}`)
	writtenName  = regexp.MustCompile(`/srv/projects/([a-zA-Z0-9_.-]+)/|Project ([a-zA-Z0-9_.-]+) has been`)
)

// stockSum returns the hash that identifies a stock procedure file: SHA-256 of its text with whitespace folded, without the tags of its
// template, and without the project's name and archive where an old version contained them.
func stockSum(text string) string {
	text = rawTag.ReplaceAllString(text, "")
	text = archivedPath.ReplaceAllString(text, "/archives/ARCHIVE")
	if m := writtenName.FindStringSubmatch(text); m != nil {
		text = strings.ReplaceAll(text, m[1]+m[2], "NAME")
	}
	sum := sha256.Sum256([]byte(strings.Join(strings.Fields(text), " ")))
	return hex.EncodeToString(sum[:])
}

// isStock reports whether a project's procedure file is one of the versions that makina-states wrote into every new project (files/projects
// of its repository, all of its history): it does what the native procedure does.
func isStock(procedure, text string) bool {
	sum := stockSum(text)
	switch procedure {
	case "archive":
		switch sum {
		case "39980b6dcf96d6cc28d5b51ba85c1195bf15589c29d77b9b1b248c60c9941a03",
			"45a9c118a4fc65f6c7a62d4be2b4a3916c181f4113124f1dfb8917b9a4b6a340",
			"9149010307995588fe69e6203c01b4368b18f317dddfcf92bd98bf1b95f029be",
			"f1dfef58879e0d35703092a7d383916ce0c4ba9ee205f083c5de5f787f839977":
			return true
		}
	case "fixperms":
		switch sum {
		case "0962012696768c1efa45bdf32fd8f3d76904695c420f89e3bd863e801cc5d3db",
			"13253ed33d241b1164fcfb4ef0350ca2ead7484684c5089747aef0252cab7da9",
			"39da5f35b78fa4bdcb341eab7e1413d160331152356f0c4dd2ffb96a74457bf3",
			"42ae067855bf2f82f1672c9e28f1877d101fcbd789d373a0b928b01d539d5c43",
			"44253ff5b0a16483b8ff09a31bd407fff4609750f670efe94e76d7c0a03a11e7",
			"44392af90d6e58e9a9de07dbaf9bee61583c8faf9630583292bb09225b273293",
			"4679406ae869f7fdfd812eb3b6058883e91af02914fc16534a1781449a0e13eb",
			"4c92bc0e1a8cd80e92bf6a24194ff56ec0c91dbceaf05cd6cee31b68e1771635",
			"4f15ac95447e152e998dff5b6bf7751780a2c41b925f3ee717611aaeed6be5db",
			"4f633ff81eba42e6a9de9e2cffb8517e253b2efef73d700ab96fdc03cd3694a9",
			"5127024638fd328fd814c429f2d9abcc9c4a22a3b953d2e1d62ab307bb0cda6b",
			"5a2307712a1f4c274de1b85c6a9e0b5d0c28e032bcb6fe32f64be6a09cf16eef",
			"7743207ec61fcd0f5ad27dcc3a6d4dce4c176a5fd4bb8f43b0a94d557a2b2b06",
			"932364a9b0fe9f7fd17bbdd54b476f0eaa49f76519a1d257c0dad856976a141b",
			"b4eddcbb7bca8f8bd649c7a8a9d6a3de4d2a6f2aa755dae4086faefb4ab87b84",
			"bbef838143ba6fa5069664007f43264844f43c737eab22bef627e24f96f63c2c",
			"c6bec5fad5e025e5c01e8bc37d48dd92096546b87ecf155e7719440a1b340503",
			"f1602ac4ca591e2dd961824da8637b47acdd08b9f48836cdfa9f691e364a2230":
			return true
		}
	case "rollback":
		switch sum {
		case "230d5770f3b5151c9404622f0cf4aca89b9b3e92cc2ba120267b5e2cca82f96f",
			"23ed925feb73e603372369ffce5e32d00df76f328dbb6ecd98306ccb17b263a7",
			"51a8af8739e873e0d9dc7d80d85bd7193aa41a5043eb8ad3493a2cbc5eee63ce",
			"d5d0ec53990b0937761144e1518d4f928e166030ccdb828bf058883040f51f95",
			"f514cc20b98e54b19dc71a3c4cbe097abb75e3e8c762f8d8cf9114970f789b40":
			return true
		}
	case "notify":
		switch sum {
		case "078e4ff3c7274722a4d1dc0f26ada8136d2066cc226c663e119a7f3a6c51f0c1",
			"5854e57a727a1c8996f23ce872b47527039500938e2253213afda00ccf6f486e",
			"74b03650d43b6e3d2d815101666dd48e0c6229faad14a6b514857653a2e925e8",
			"c0b153d10fe74d81592e94bd7274357f467e62d3e72eea580ef79e69624b0dab":
			return true
		}
	}
	return false
}

# SPDX-License-Identifier: Apache-2.0
# Prints each sentence of a comment or docstring that begins with "What", "Who", "Whose" or
# "Of" in the place of a subject, with its file and line (docs/inside/style.md, rule 2). A question
# may. The language follows from the file's name: C, C++ and CUDA, Lua, Python, else shell.

function fault(text, line,    rest, sentence) {
    # A sentence begins at the start, behind the end of another one, or as an item of a list.
    rest = text
    while (match(rest, /(^|[.:;!?)"] |\| |- )(What|Who|Of)(ever|se|soever)?([^A-Za-z0-9_-]|$)/)) {
        sentence = substr(rest, RSTART)
        rest = substr(rest, RSTART + RLENGTH)
        sub(/^[^WO]*/, "", sentence)
        match(sentence, /[.?!]( |$)|[.?!]"|$/)
        sentence = substr(sentence, 1, RSTART)
        if (sentence !~ /\?$/)
            print file ":" line ": no subject: " sentence
    }
}

# A paragraph ends at an empty line and at an item of a list.
function end_paragraph() {
    if (paragraph != "")
        fault(paragraph, begun)
    paragraph = ""
}
function add(text) {
    gsub(/^[ \t*#\/-]+|[ \t]+$/, "", text)
    if (text == "" || text ~ /^!|SPDX-License-Identifier/)
        end_paragraph()
    else {
        if (paragraph == "")
            begun = FNR
        paragraph = paragraph == "" ? text : paragraph " " text
    }
}

# Takes out what is quoted on one line, so that a comment's mark in a text is none.
function without_texts(line) {
    gsub(/\\./, "", line)
    gsub(/"[^"]*"/, "\"\"", line)
    return line
}

FNR == 1 {
    end_paragraph()
    file = FILENAME
    inside = 0
    language = FILENAME ~ /\.(c|h|cu|cc)$/ ? "c" : FILENAME ~ /\.lua$/ ? "lua" : FILENAME ~ /\.py$/ ? "python" : "shell"
    mark = language == "lua" ? "--" : "#"
}

language == "c" {
    line = $0
    if (!inside) {
        plain = without_texts(line)
        if (!match(plain, /\/[*\/]/)) {
            end_paragraph()
            next
        }
        # The comment's own text may have quotes, so it is cut from the line as it is.
        start = index(plain, substr(plain, RSTART, 2))
        before = substr(plain, 1, RSTART - 1)
        is_line_comment = substr(plain, RSTART, 2) == "//"
        line = substr(line, index(line, substr(plain, RSTART, 2)) + 2)
        if (before !~ /^[ \t]*$/ || !is_line_comment)
            end_paragraph()
        if (is_line_comment) {
            add(line)
            next
        }
        inside = 1
    }
    if ((at = index(line, "*/"))) {
        add(substr(line, 1, at - 1))
        end_paragraph()
        inside = 0
    } else
        add(line)
    next
}

language == "python" && (inside || /^[ \t]*[rf]?"""/) {
    line = $0
    if (!inside) {
        end_paragraph()
        sub(/^[ \t]*[rf]?"""/, "", line)
        inside = 1
    }
    if ((at = index(line, "\"\"\""))) {
        add(substr(line, 1, at - 1))
        end_paragraph()
        inside = 0
    } else
        add(line)
    next
}

{
    if (match($0, "^[ \t]*" mark)) {
        add(substr($0, RSTART + RLENGTH))
        next
    }
    end_paragraph()
    # A comment behind code.
    plain = without_texts($0)
    gsub(/'[^']*'/, "''", plain)
    if (match(plain, "[ \t]" mark " ")) {
        add(substr(plain, RSTART + RLENGTH))
        end_paragraph()
    }
}

END {
    end_paragraph()
}

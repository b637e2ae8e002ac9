# loss_picture.awk - draws the loss of a training over its steps, as text.
#
# Input: what an example prints, in the order of steps; other lines are skipped.
#
#   step S  R ranks  loss L ...            train_text, elastic_train
#   step S members R loss L ...            gpt, stages
#   outer S members R hash H loss L        diloco, async_diloco
#
# Below the axis stand marks: x where the number of ranks fell, + where it rose,
# with the numbers before and after it. Awk of POSIX; 70 columns.
#
#   awk -f examples/loss_picture.awk OUTPUT-OF-train_text

($1 == "step" || $1 == "outer") && $2 ~ /^[0-9]+$/ {
    world = $4 == "ranks" ? $3 : $3 == "members" ? $4 : 0
    for (i = 5; i < NF && $i != "loss"; i++)
        ;
    if (world == 0 || i >= NF) next
    steps[++points] = $2
    ranks[points] = world
    losses[points] = $(i + 1) + 0
    if (points == 1 || losses[points] > most) most = losses[points]
    if (points == 1 || losses[points] < least) least = losses[points]
}

function column_of(step) {
    return 1 + int((step - steps[1]) * (columns - 1) / span + 0.5)
}

# Between two points the line is straight.
function loss_at(step,   i, share) {
    for (i = 1; i < points - 1 && steps[i + 1] < step; i++)
        ;
    share = (step - steps[i]) / (steps[i + 1] - steps[i])
    return losses[i] + share * (losses[i + 1] - losses[i])
}

function spaces(count,   text) {
    for (text = ""; count > 0; count--) text = text " "
    return text
}

function draw_curve(   c, r, row, line) {
    for (c = 1; c <= columns; c++)
        row[c] = int((most - loss_at(steps[1] + (c - 1) * span / \
            (columns - 1))) * (rows - 1) / height + 0.5)
    for (r = 0; r < rows; r++) {
        line = ""
        for (c = 1; c <= columns; c++) line = line (row[c] == r ? "*" : " ")
        sub(/ +$/, "", line)
        printf "%s |%s\n", r == 0 ? sprintf("%6.2f", most) : \
            r == rows - 1 ? sprintf("%6.2f", least) : spaces(6), line
    }
}

function draw_axis(   c, marks, notes, text, at) {
    for (c = 1; c <= columns; c++) marks[c] = "-"
    notes = ""
    for (c = 2; c <= points; c++) {
        if (ranks[c] == ranks[c - 1]) continue
        at = column_of(steps[c])
        marks[at] = ranks[c] < ranks[c - 1] ? "x" : "+"
        notes = notes sprintf("  %s %s: %d -> %d ranks", marks[at], \
            ranks[c] < ranks[c - 1] ? "lost by step " steps[c] : \
            "joined by step " steps[c], ranks[c - 1], ranks[c])
    }
    text = ""
    for (c = 1; c <= columns; c++) text = text marks[c]
    print "  loss +" text
    print spaces(8) "step " steps[1] \
        spaces(columns - 5 - length(steps[1] steps[points])) steps[points]
    if (notes != "") print spaces(6) notes
}

END {
    columns = 60
    rows = 10
    span = steps[points] - steps[1]
    height = most - least
    if (points < 2 || span <= 0) {
        print "loss_picture.awk: fewer than two steps with a loss" > "/dev/stderr"
        exit 1
    }
    if (height <= 0) height = 1
    draw_curve()
    draw_axis()
}

"""What figures, pictures that move and the builder agree on, without a library that draws."""

# One colour language: household H is orange and the others grey, the paper's mechanism is blue, what
# holds for every table is green. All can be read as words on white, and differ in lightness too
COLOURS = {
    "H": "#B84A00",
    "Others": "#666666",
    "Data": "#000000",
    "Unweighted": "#666666",
    "Weighted": "#0072B2",
    "DPweighted": "#0072B2",
    "Weighted-M": "#00405F",
    "EMweighted": "#AA3377",
    "Countweighted": "#8A6D00",
    # strict: their ε holds for every table
    "Own weights": "#00755A",
    "Limits": "#5B7F00",
    "Capped": "#8A6D00",
    "Range-capped": "#00755A",
    # darker: the same weights with another prior
    "Capped on T": "#7A4B00",
    "Range-capped on T": "#004D3B",
}
# kind of output that has the edition of a figure for phones
NARROW_TYPE = "application/vnd.ppm.narrow"

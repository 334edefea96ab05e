"""The colours of the pictures: Okabe and Ito's (2008), which stay apart for every kind of colour vision."""

BLUE, ORANGE, GREEN, PURPLE = "#0072b2", "#e69f00", "#009e73", "#cc79a7"
SKY, VERMILION, YELLOW, GREY = "#56b4e9", "#d55e00", "#f0e442", "#999999"
BLACK, INK, PAPER, FAINT = "#000000", "#1a1a1a", "#ffffff", "#e8e8e8"

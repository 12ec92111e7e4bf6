# padding over a page boundary is not noted
/note_boundaries(ring, head, head + pad);/d

package broadcast

const MaxDoubted = maxDoubted

/** What `setTimeout` takes at most, in milliseconds: a longer one would fire at once. */
export const longestTimer = 2 ** 31 - 1

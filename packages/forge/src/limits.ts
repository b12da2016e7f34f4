/** Characters of a pull request's body; GitHub's limit is 65,536 and others are near it. */
export const maxBodyLength = 60_000
/** Characters of a title; GitHub's limit is 256. */
export const maxTitleLength = 250

import { reasons } from '@tutti/core'

/** A text that says that somebody stopped the work, for the one who did. */
export const byWhom = (text: string, stoppedHere: boolean): string =>
  stoppedHere ? text.replace(reasons.stopped_by_user.sentence, 'You stopped it.') : text

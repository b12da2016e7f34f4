/**
 * Something that only the person at the keyboard can mend; the message says what and how.
 *
 * @param {string} message
 */
export function setUpError(message) {
  return Object.assign(new Error(message), { code: 'tutti_set_up' })
}

/** @param {unknown} error @returns {error is Error} */
export function isSetUpError(error) {
  return error instanceof Error && 'code' in error && error.code === 'tutti_set_up'
}

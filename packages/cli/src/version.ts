/** The version of this checkout. */
export const version = '0.1.0'

/** What a recovery says of a path that it has not, or has as it was before; `path` as it is shown. */
export const leftOutText = (path: string, reason: string): string =>
  // What a capture may not read was not deleted. Of a repository there is nothing that was read before.
  reason === 'unreadable' && !/^\.git(\/|$)/.test(path)
    ? `as it was last read, if ever: ${path} (${reason})`
    : `not there: ${path} (${reason})`

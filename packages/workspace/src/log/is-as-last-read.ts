/**
 * Of a path that a recovery calls missing, and why: what a capture may not read was not deleted, so it is as it was read before. Of a
 * repository there is no such thing.
 */
export const isAsLastRead = ({ path, reason }: { readonly path: string; readonly reason: string }): boolean =>
  reason === 'unreadable' && !/^\.git(\/|$)/.test(path)

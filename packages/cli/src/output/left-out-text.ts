import { isAsLastRead } from '@tutti/workspace/log'

/** What a recovery says of a path that it has not, or has as it was before; `path` as it is shown. */
export const leftOutText = (path: string, reason: string): string =>
  isAsLastRead({ path, reason })
    ? `as it was last read, if ever: ${path} (${reason})`
    : `not there: ${path} (${reason})`

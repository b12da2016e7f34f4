/** Paths that nobody may have in a workspace, of each kind one: whoever names one is not to be believed. */
export const hostilePaths: readonly string[] = [
  '../x',
  '/etc/x',
  'a/../../x',
  '.git/config',
  '.GIT/hooks/y',
  'a/.git/z',
  'a\0b',
  '',
  './',
  'p/'.repeat(2499) + 'xx',
]

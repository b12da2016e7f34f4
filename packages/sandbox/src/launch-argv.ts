/** Limits that a shell sets on itself before it becomes the program. `ulimit -f` counts blocks of 512 bytes. */
const script = 'ulimit -c 0; ulimit -f "$1" || exit 97; shift; exec "$@"'

/** The argv that starts a program in its resource group, with a largest file size and without core dumps. */
export const launchArgv = (
  prefix: readonly string[],
  fileBytes: number,
  program: readonly string[],
): string[] => [
  ...prefix,
  '/bin/sh',
  '-c',
  script,
  'tutti-limit',
  String(Math.max(1, Math.ceil(fileBytes / 512))),
  ...program,
]

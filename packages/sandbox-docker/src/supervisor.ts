import { TuttiError } from '@tutti/core'

/**
 * Process 1 of a container, for any POSIX shell. It reads what to run from its input: neither arguments nor the container's settings, which
 * whoever may use the engine can read, then have the environment. It says whether the program was started, reaps what others leave
 * behind, and ends with the program; the kernel ends the rest. SIGTERM it passes on to all there are, so it must be process 1.
 */
export const supervisorScript = `
[ $$ = 1 ] || exit 97
trap 'tutti_stop=1; kill -TERM -1 2>/dev/null' TERM
IFS= read -r tutti_lines || exit 0
tutti_text=
while [ "$tutti_lines" -gt 0 ]; do
  IFS= read -r tutti_line || exit 0
  tutti_text="$tutti_text$tutti_line
"
  tutti_lines=$((tutti_lines - 1))
done
eval "$tutti_text"
unset tutti_lines tutti_line tutti_text
cd "$tutti_cwd" || { echo no-folder; exit 126; }
command -v "$1" >/dev/null || { echo no-program; exit 127; }
echo started
exec 3<&0 </dev/null
(exec "$@") <&3 3<&- &
tutti_child=$!
exec 3<&- 2>/dev/null
[ -z "$tutti_stop" ] || kill -TERM "$tutti_child"
tutti_before=127
while :; do
  tutti_stop=
  wait "$tutti_child"
  tutti_code=$?
  [ "$tutti_code" != 127 ] || exit "$tutti_before"
  [ -n "$tutti_stop" ] || exit "$tutti_code"
  tutti_before=$tutti_code
done
`

/** The first line that the supervisor writes to its standard output; what follows is the program's. */
export type SupervisorAnswer = 'started' | 'no-folder' | 'no-program'

export interface Launch {
  readonly argv: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
}

/** Of the engine's own user; engines hand them on to every container. */
const engineVariables = ['http_proxy', 'https_proxy', 'ftp_proxy', 'all_proxy', 'no_proxy']

/** What the supervisor reads. @throws TuttiError `invalid_argument` for what no shell can be told. */
export function launchText({ argv, cwd, env }: Launch): string {
  if (argv.length === 0)
    throw new TuttiError('invalid_argument', 'A program to run must be named.', { field: 'argv' })
  const lines = [`unset ${engineVariables.flatMap((name) => [name, name.toUpperCase()]).join(' ')}`]
  for (const [name, value] of Object.entries(env)) {
    if (!/^[A-Za-z_]\w*$/.test(name)) {
      throw new TuttiError('invalid_argument', `${name} is not a name of an environment variable.`, {
        field: 'env',
        name,
      })
    }
    lines.push(`export ${name}=${quote(value)}`)
  }
  lines.push(`tutti_cwd=${quote(cwd)}`, `set -- ${argv.map(quote).join(' ')}`)
  const text = lines.join('\n')
  return `${text.split('\n').length}\n${text}\n`
}

/** Within single quotes a shell changes nothing. */
function quote(value: string): string {
  if (value.includes('\0'))
    throw new TuttiError('invalid_argument', 'A program cannot be given a NUL byte.', { field: 'argv' })
  return `'${value.replaceAll("'", `'\\''`)}'`
}

/**
 * What a person types to call us: `npx tutti` below npx or an npm script (both say so in the environment), where `tutti` alone need
 * not be on PATH; else `tutti`.
 */
export function programName(env: Readonly<Record<string, string | undefined>>): string {
  const byNpm = [env['npm_command'], env['npm_execpath']].some((value) => (value ?? '') !== '')
  return byNpm ? 'npx tutti' : 'tutti'
}

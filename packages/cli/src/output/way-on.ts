/** What makes an agent in ERROR go on with the turns that wait. A pause holds up messages, too. */
export const wayOn = (paused: boolean, id: string): string =>
  `${paused ? '' : 'a message or '}"tutti agent resume ${id}" goes on with what waits`

/** What to do about an agent in ERROR, as it does nothing by itself; undefined where nothing waits and its own words say it. */
export function waysOn(
  {
    reason,
    paused,
    queuedTurns,
  }: { readonly reason: string; readonly paused: boolean; readonly queuedTurns: number },
  id: string,
): string | undefined {
  const isLost = reason === 'sandbox_lost'
  const where = isLost ? ', in a new sandbox' : ''
  const sandbox = isLost ? ` "tutti agent recover ${id}" makes a sandbox alone, to see whether it stays.` : ''
  if (queuedTurns > 0)
    return `${queuedTurns === 1 ? '1 turn waits' : `${queuedTurns} turns wait`}: ${wayOn(paused, id)}${where}.${sandbox}`
  return isLost && !paused ? `A message goes on in a new sandbox.${sandbox}` : undefined
}

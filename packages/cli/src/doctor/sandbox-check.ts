import { describeLocalSandbox } from '@tutti/sandbox'

/** What works of the sandboxes below `root`, for doctor: from here and from the server the same words. */
export async function sandboxCheck(root: string): Promise<{
  readonly name: 'sandbox'
  readonly status: 'ok' | 'warning' | 'failed'
  readonly found: string
  readonly origin: string
  readonly fix: string
}> {
  const { bubblewrap, limiter, limiterNote, disk, diskNote } = await describeLocalSandbox({ root })
  if (!bubblewrap.works) {
    const { problem, remedy } = bubblewrap
    return { name: 'sandbox', status: 'failed', found: problem, origin: '', fix: remedy }
  }
  const weaker = [limiter === 'watchdog' ? limiterNote : '', disk === 'watchdog' ? diskNote : ''].filter(
    Boolean,
  )
  return {
    name: 'sandbox',
    status: weaker.length > 0 ? 'warning' : 'ok',
    found: `bubblewrap ${bubblewrap.version}; limits: ${limiter}; disk: ${disk}`,
    origin: '',
    fix: weaker.join('; '),
  }
}

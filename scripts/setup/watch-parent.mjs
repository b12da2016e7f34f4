const CHECK_MS = 1_000

/**
 * Calls back once when this process has another parent than now, which is when its own has ended. Keeps no process alive.
 *
 * @param {() => void} onGone
 * @returns {() => void} stops watching
 */
export function watchParent(onGone) {
  const parent = process.ppid
  const timer = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(timer)
    onGone()
  }, CHECK_MS)
  timer.unref()
  return () => clearInterval(timer)
}

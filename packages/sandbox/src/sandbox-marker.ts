/** In the environment of everything in a sandbox; how processes of one without isolation are found again. */
export const sandboxMarker = 'TUTTI_SANDBOX_ID'

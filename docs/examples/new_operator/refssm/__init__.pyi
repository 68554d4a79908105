from refssm.response import (
    impulse_response as impulse_response,
    impulse_response_vjp as impulse_response_vjp,
)

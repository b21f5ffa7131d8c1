//! What can be said of TCP under active queue management without simulating a packet.
